"""Submit messages: every fault is named with its field and a remedy, all at once."""

from __future__ import annotations

import contextlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.errors import Rejected
from runtender.model import Limits, SubmitAction, SubmitKind
from runtender.wire.durations import format_duration, parse_duration
from runtender.wire.messages import parse_submit, peek_request_id

AT = datetime(2026, 1, 1, tzinfo=UTC)


def submit(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return parse_submit(body, message_id="m-1", published_at=AT)


def faults(message):
    with pytest.raises(Rejected) as rejected:
        submit(message)
    return {fault.field: f"{fault.problem}; {fault.remedy}" for fault in rejected.value.faults}


def test_a_plain_submit_takes_the_defaults():
    request = submit({"config": {"run_name": "x"}})
    assert (request.action, request.kind, request.request_id) == (
        SubmitAction.SUBMIT,
        SubmitKind.FORECAST,
        "m-1",
    )
    assert request.limits == Limits()


def test_everything_can_be_said():
    request = submit(
        {
            "request_id": "r",
            "config_uri": "gs://b/c.json",
            "families": ["ml"],
            "models": ["lightgbm", "lightgbm"],
            "overrides": {"ml": {"machine_type": "n2-standard-16", "spot": True}},
            "force": True,
            "labels": {"team": "demand"},
            "limits": {"capacity_wait": "45m", "run": "1h30m", "cost_usd": 10},
            "entrypoint": "pkg.main:main",
        }
    )
    assert request.models == ("lightgbm",)
    assert request.limits == Limits(
        capacity_wait=timedelta(minutes=45), run=timedelta(minutes=90), cost_usd=10.0
    )


REJECTED = {
    "unknown key": ({"config": {}, "famlies": []}, "famlies", "did you mean 'families'"),
    "not JSON": (b"{", "message", "send one JSON object"),
    "a list": ([], "message", "send one JSON object"),
    "2 MB": (b" " * 2_000_000, "message", "config_uri"),
    "no config": ({}, "config", "is missing"),
    "two configs": ({"config": {}, "config_uri": "gs://b/c"}, "config_uri", "beside `config`"),
    "config too large": ({"config": {"x": "y" * 300_000}}, "config", "config_uri"),
    "no URI": ({"config_uri": "/tmp/c.json"}, "config_uri", "gs://bucket/object"),
    "unknown action": ({"action": "start", "config": {}}, "action", "submit, cancel, retry, step"),
    "action of the wrong type": ({"action": 7, "config": {}}, "action", "use one of"),
    "cancel of nothing": ({"action": "cancel"}, "run_id", "name the run"),
    "step of nothing": ({"action": "step"}, "job_key", "name the job"),
    "a run id that is a path": ({"action": "cancel", "run_id": "a/b"}, "run_id", "not a run id"),
    "a job key that is none": ({"action": "step", "job_key": "jobs/x"}, "job_key", "sf-<run id>"),
    "force of the wrong type": ({"config": {}, "force": "yes"}, "force", "true or false"),
    "no duration": ({"config": {}, "limits": {"run": 90}}, "limits.run", "90m"),
    "a duration of none": ({"config": {}, "limits": {"run": "0s"}}, "limits.run", "120d"),
    "unknown limit": ({"config": {}, "limits": {"rum": "1h"}}, "limits.rum", "did you mean 'run'"),
    "no amount": ({"config": {}, "limits": {"cost_usd": -1}}, "limits.cost_usd", "above 0"),
    "empty families": ({"config": {}, "families": []}, "families", "leave it out"),
    "a reserved label": ({"config": {}, "labels": {"sf-job": "x"}}, "labels.sf-job", "reserved"),
    "a label with capitals": ({"config": {}, "labels": {"team": "Demand"}}, "labels.team", "at most 63"),
    "override of the wrong type": (
        {"config": {}, "overrides": {"ml": {"workers": True}}},
        "overrides.ml.workers",
        "JSON number",
    ),
    "unknown override": (
        {"config": {}, "overrides": {"ml": {"wrokers": 1}}},
        "overrides.ml.wrokers",
        "workers",
    ),
    "no entry point": ({"config": {}, "entrypoint": "main"}, "entrypoint", "package.module:function"),
    "force and every": ({"config": {}, "force": True, "every": "1d"}, "force", "leave one"),
}


@pytest.mark.parametrize(("message", "field", "words"), REJECTED.values(), ids=REJECTED.keys())
def test_bad_input_names_the_field_and_what_to_do(message, field, words):
    assert words in faults(message)[field]


def test_all_faults_are_told_at_once():
    assert set(faults({"force": 1, "labels": [], "limits": {"run": ""}})) == {
        "force",
        "labels",
        "limits.run",
        "config",
    }


def test_a_rejected_message_keeps_its_own_request_id_where_it_has_one():
    assert peek_request_id(b'{"request_id": "mine", "wrong": 1}') == "mine"
    assert peek_request_id(b'{"request_id": 5}') is None
    assert peek_request_id(b"\xff") is None


@given(st.integers(1, 120 * 86400).map(lambda s: timedelta(seconds=s)))
def test_durations_survive_being_written_and_read(span):
    assert parse_duration(format_duration(span)) == span


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 m", "1.5h", "999999999d", None, 5, "٣m"])
def test_what_is_no_duration_says_what_to_write(text):
    with pytest.raises(ValueError, match="write"):
        parse_duration(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    ["action", "kind", "config", "limits", "labels", "overrides", "force", "families", "every", "run_id", "x"]
)


@given(st.dictionaries(keys, json_values))
def test_any_json_object_is_read_or_rejected(message):
    with contextlib.suppress(Rejected):
        submit(message)


@pytest.mark.parametrize(
    "body",
    [
        b'{"request_id": "\\ud800", "config": {}}',
        b'{"config": {"run_name": "\\udfff"}}',
        b'{"config": {"x": NaN}}',
        b'{"config": {"x": -Infinity}}',
        b'{"config": {"x": 1e999}}',
        b'{"config": {"x": ' + b"9" * 400 + b"}}",
        b'{"config": ' + b'{"x": ' * 900 + b"1" + b"}" * 901,
        b'{"config": ' + b"[" * 200_000,
    ],
    ids=["surrogate id", "surrogate", "NaN", "Infinity", "1e999", "400 digits", "900 levels", "unclosed"],
)
def test_json_that_could_trip_a_later_reader_is_rejected_here(body):
    assert "is no JSON object" in faults(body)["message"]


def test_a_key_given_twice_is_refused_rather_than_one_of_the_two_taken():
    assert "'force' is given twice" in faults(b'{"config": {}, "force": false, "force": true}')["message"]
    assert "'a' is given twice" in faults(b'{"config": {"a": 1, "a": 2}}')["message"]
