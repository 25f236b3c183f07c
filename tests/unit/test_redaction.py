"""What counts as a secret, and what is left of it."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from runtender.redaction import (
    holds_a_secret,
    is_secret_variable,
    redacted,
    sed_commands,
    without_secrets,
)

SECRETS = {
    "access token": "ya29.a0AfB_byCdefGHI-jkl",
    "header": "bearer abc.def-123~x/y+z==",
    "identity token": "eyJhbGciOi.eyJzdWIiOi.SflKxwRJ-SM_x",
    "API key": "AIza" + "b" * 35,
    "client secret": "GOCSPX-abc_def-123",
    "signed address": "X-Goog-Signature=5a17c0ffee",
    "another cloud's key": "AKIA" + "Q" * 16,
    "a forge's token": "ghp_" + "a1" * 15,
    "private key": "-----BEGIN RSA PRIVATE KEY-----",
}
HARMLESS = (
    "the bearer",
    "ya29",
    "eyJ.no",
    "AKIA is short",
    "-----BEGIN CERTIFICATE-----",
    "gs://bucket/eyJ/part.parquet",
    "sf-flights-0123456789ab-statistical-a1",
)


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_is_taken_out_of_the_text_around_it(secret):
    assert holds_a_secret(secret)
    assert redacted(f"before, {secret}") == "before, [redacted]"


def test_of_a_private_key_nothing_is_left():
    assert redacted("a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n") == "a\n[redacted]"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_a_little_like_one_stays(text):
    assert not holds_a_secret(text)
    assert redacted(text) == text


@pytest.mark.skipif(shutil.which("sed") is None, reason="there is no sed")
@pytest.mark.parametrize("text", [*(f"before, {one}" for one in SECRETS.values()), *HARMLESS])
def test_a_worker_redacts_a_line_as_the_plane_does(text):
    words = [word for command in sed_commands() for word in ("-e", command)]
    said = subprocess.run(["sed", "-E", *words], input=text, capture_output=True, text=True, check=True)
    assert said.stdout == redacted(text)


@pytest.mark.parametrize(
    "name",
    ["DB_PASSWORD", "TOKEN", "hf_token", "API_KEY", "MY_APP_SECRET", "AWS_SECRET_ACCESS_KEY", "APIKEY"],
)
def test_a_variable_is_a_secret_by_the_end_of_its_name(name):
    assert is_secret_variable(name)


@pytest.mark.parametrize("name", ["TOKEN_LIMIT", "PARTITION_KEY", "SECRET_PROJECT", "PWD", "MONKEY", "KEY"])
def test_other_variables_are_none(name):
    assert not is_secret_variable(name)


def test_a_document_keeps_all_but_its_secrets():
    document = {
        "config": {
            "env": {
                "DB_PASSWORD": "hunter2",
                "REGION": "eu",
                "TOKEN": "secret://projects/p/secrets/s/versions/1",
            },
            "args": ["--key", "AIza" + "b" * 35, 7, None],
        }
    }
    assert without_secrets(document) == {
        "config": {
            "env": {
                "DB_PASSWORD": "[redacted]",
                "REGION": "eu",
                "TOKEN": "secret://projects/p/secrets/s/versions/1",
            },
            "args": ["--key", "[redacted]", 7, None],
        }
    }
    assert "hunter2" not in json.dumps(without_secrets(document))
