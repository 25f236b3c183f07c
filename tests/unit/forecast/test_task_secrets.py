"""A task names its secrets; what is one in plain text is refused, and repeated nowhere."""

from __future__ import annotations

import pytest

from runtender.errors import Rejected
from runtender.forecast.task import parse_task

NAMED = "secret://projects/p/secrets/db/versions/latest"
PLANTED = "hunter2"


def faults_of(**task):
    with pytest.raises(Rejected) as rejected:
        parse_task({"name": "n", "image": "busybox:1", **task})
    return rejected.value


@pytest.mark.parametrize("version", [NAMED, "secret://projects/example.com:p/secrets/a_b-C/versions/7"])
def test_a_secret_may_be_named_under_any_variable(version):
    env = {"DB_PASSWORD": version, "ANYTHING": version}
    assert parse_task({"name": "n", "env": env}).env == env


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("secret://db", id="no resource"),
        pytest.param("secret://projects/p/secrets/db", id="no version"),
        pytest.param(f"{NAMED}/more", id="more than a version"),
        pytest.param("secret://projects/p/secrets/../versions/1", id="a path that climbs"),
        pytest.param("secret://projects/p/secrets/db/versions/1?x=1", id="a query"),
        pytest.param("secret://projects/p/secrets/$(id)/versions/1", id="a word for a shell"),
    ],
)
@pytest.mark.parametrize("name", ["DB_PASSWORD", "ANYTHING"])
def test_what_names_no_version_is_refused_with_an_example(name, value):
    (fault,) = faults_of(env={name: value}).faults
    assert (fault.field, "secret://projects/PROJECT" in fault.remedy) == (f"env.{name}", True)


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({"DB_PASSWORD": PLANTED}, id="under a secret's name"),
        pytest.param({"HF_TOKEN": PLANTED}, id="under another one's"),
        pytest.param({"DB_PASSWORD": [PLANTED]}, id="and of the wrong type"),
        pytest.param({"DB_PASSWORD": {"value": PLANTED}}, id="and in an object"),
    ],
)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(env):
    rejected = faults_of(env=env)
    assert f"env.{next(iter(env))}" in [fault.field for fault in rejected.faults]
    assert PLANTED not in str(rejected)


@pytest.mark.parametrize("field", ["command", "args", "env"])
def test_a_token_is_refused_wherever_it_stands_and_not_repeated(field):
    token = "ya29.a0AfB_byCdefGHI-jkl"
    rejected = faults_of(**{field: {"HARMLESS": token} if field == "env" else ["--key", token]})
    assert [fault.field for fault in rejected.faults] == [field]
    assert token not in str(rejected)


def test_an_empty_variable_is_no_secret():
    assert parse_task({"name": "n", "env": {"DB_PASSWORD": ""}}).env == {"DB_PASSWORD": ""}
