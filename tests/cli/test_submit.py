"""`submit`: what reaches the topic, what is said about the answer, and what is refused before anything is published."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

import pytest


@pytest.fixture
def config(flights):
    return json.loads(flights.read_bytes())


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_an_accepted_submit_prints_the_run_and_its_jobs(runtender, flights, mailbox, make, parsed, form):
    result = runtender("submit", str(flights), "--request-id", "mine", "--format", form)

    assert result.exit_code == 0
    assert parsed(result, form, "answer") == {
        "request_id": "mine",
        "state": "accepted",
        "run_id": make.RUN_ID,
        "jobs": {"statistical": make.job().job_key},
        "errors": [],
    }


def test_the_message_holds_the_config_and_only_what_was_asked_for(runtender, flights, mailbox, config):
    runtender("submit", str(flights), "--request-id", "mine")

    assert mailbox.topics == ["sf-submit"]
    assert mailbox.messages == [
        {"action": "submit", "kind": "forecast", "request_id": "mine", "config": config}
    ]


def test_every_option_reaches_the_message(runtender, flights, mailbox):
    runtender(
        "submit", str(flights), "--force", "--run-limit", "90m", "--capacity-wait", "1h30m",
        "--label", "team=planning", "--label", "stage=test", "--models", "theta, autoets",
        "--families", "statistical", "--image", "example/worker:2", "--package-uri", "gs://demo-code/runs/w-1.zip",
        "--entrypoint", "worker.main:main",
    )  # fmt: skip

    (message,) = mailbox.messages
    assert {key: value for key, value in message.items() if key not in {"config", "request_id"}} == {
        "action": "submit",
        "kind": "forecast",
        "force": True,
        "limits": {"run": "1h30m", "capacity_wait": "1h30m"},
        "labels": {"team": "planning", "stage": "test"},
        "models": ["theta", "autoets"],
        "families": ["statistical"],
        "image": "example/worker:2",
        "package_uri": "gs://demo-code/runs/w-1.zip",
        "entrypoint": "worker.main:main",
    }


def test_a_timer_asks_for_at_most_one_attempt_per_period(runtender, flights, mailbox):
    assert runtender("submit", str(flights), "--every", "24h").exit_code == 0
    assert mailbox.messages[0]["every"] == "1d"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        pytest.param(("--every", "daily"), "'daily' is not a duration", id="no span"),
        pytest.param(("--every", "1d", "--force"), "cannot be combined with `every`", id="with force"),
    ],
)
def test_a_period_that_makes_no_sense_is_refused_before_publishing(
    runtender, flights, mailbox, options, error
):
    result = runtender("submit", str(flights), *options)

    assert result.exit_code == 2
    assert error in result.stderr
    assert mailbox.messages == []


def test_two_submits_without_a_request_id_are_two_requests(runtender, flights, mailbox):
    runtender("submit", str(flights), "--no-confirm")
    runtender("submit", str(flights), "--no-confirm")

    first, second = (message["request_id"] for message in mailbox.messages)
    assert first != second


def test_the_panel_is_looked_at_before_publishing(runtender, flights):
    result = runtender("submit", str(flights))

    assert "105 series, 38325 rows" in result.stderr
    assert "105 series" not in result.stdout


@pytest.mark.parametrize("name", ["flights.yaml", "flights.yml"])
def test_a_yaml_config_is_the_same_run(runtender, flights, mailbox, config, name):
    as_yaml = flights.with_name(name)
    # JSON is YAML; the date would be one in YAML's own reading.
    as_yaml.write_text(
        json.dumps({**config, "output": {"since": "2026-01-05"}}).replace('"2026-01-05"', "2026-01-05")
    )

    assert runtender("submit", str(as_yaml)).exit_code == 0
    assert mailbox.messages[0]["config"]["output"] == {"since": "2026-01-05"}


def test_a_merged_key_of_yaml_may_be_said_anew(runtender, flights, mailbox, config):
    data = config["data"]
    lines = [f"{key}: {json.dumps(value)}" for key, value in config.items() if key != "data"]
    lines += ["data:", f"  <<: {json.dumps({**data, 'horizon': 1})}", f"  horizon: {data['horizon']}"]
    as_yaml = flights.with_name("flights.yaml")
    as_yaml.write_text("\n".join(lines))

    assert runtender("submit", str(as_yaml)).exit_code == 0
    assert mailbox.messages[0]["config"] == config


def test_a_config_comes_from_standard_input(runtender, flights, mailbox, config):
    assert runtender("submit", "-", input=flights.read_text()).exit_code == 0
    assert mailbox.messages[0]["config"] == config


def test_a_config_comes_from_cloud_storage(runtender, flights, mailbox, objects, config):
    objects.put("demo-code", "configs/flights.json", flights.read_bytes())

    assert runtender("submit", "gs://demo-code/configs/flights.json").exit_code == 0
    assert mailbox.messages[0]["config"] == config


def test_a_large_config_travels_by_uri(runtender, flights, mailbox, objects, config):
    large = {**config, "output": {"note": "x" * 300_000}}
    flights.write_text(json.dumps(large))

    assert runtender("submit", str(flights)).exit_code == 0

    (message,) = mailbox.messages
    assert "config" not in message
    bucket, _, name = message["config_uri"].removeprefix("gs://").partition("/")
    body = objects.read(bucket, name, limit=1_000_000)
    assert json.loads(body) == large
    assert name == f"runs/submitted/{hashlib.sha256(body).hexdigest()[:32]}.json"


def test_a_task_needs_no_panel(runtender, mailbox, tmp_path):
    task = tmp_path / "task.json"
    task.write_text(json.dumps({"name": "hello", "image": "example/hello:1", "command": ["echo", "hello"]}))

    assert runtender("submit", str(task), "--kind", "task").exit_code == 0
    assert mailbox.messages[0]["kind"] == "task"


def test_a_duplicate_says_how_to_start_a_new_attempt(runtender, flights, mailbox, parsed):
    mailbox.answer_state = "duplicate"
    result = runtender("submit", str(flights), "--format", "json")

    assert result.exit_code == 0
    assert parsed(result, "json", "answer")["state"] == "duplicate"
    assert "--force" in result.stderr


def test_a_rejected_submit_prints_every_error_of_the_plane(runtender, flights, mailbox, parsed):
    mailbox.answer_state = "rejected"
    mailbox.errors = ["image: is missing; write the container image to run", "something else"]
    result = runtender("submit", str(flights), "--format", "json")

    assert result.exit_code == 2
    assert result.stderr.splitlines()[-2:] == [
        "error: image: is missing; write the container image to run",
        "error: something else",
    ]
    assert parsed(result, "json", "answer")["errors"] == mailbox.errors


def test_a_silent_plane_is_told_apart_from_a_refusal(runtender, flights, mailbox):
    mailbox.answer_state = None
    result = runtender("submit", str(flights), "--request-id", "mine")

    assert result.exit_code == 1
    assert result.stdout == ""
    assert "request mine is published, but the plane has not answered" in result.stderr
    for place in ("runtender doctor", "runtender local status", ".runtender/logs", "full disk"):
        assert place in result.stderr, "what to look at"
    assert len(mailbox.messages) == 1


def test_no_confirm_leaves_at_once(runtender, flights, mailbox, parsed):
    mailbox.answer_state = None
    result = runtender(
        "submit", str(flights), "--no-confirm", "--format", "json", answer_wait=timedelta(hours=1)
    )

    assert result.exit_code == 0
    assert parsed(result, "json", "answer")["state"] == "published"


def test_waiting_without_an_answer_is_a_usage_error(runtender, flights, mailbox):
    result = runtender("submit", str(flights), "--wait", "--no-confirm")

    assert result.exit_code == 2
    assert mailbox.messages == []


def test_submit_and_wait_prints_one_document_and_ends_as_the_run_did(
    runtender, flights, mailbox, make, parsed
):
    job = make.ended_job("NO_CAPACITY")
    mailbox.jobs, mailbox.run = (job,), make.run(job)
    result = runtender("submit", str(flights), "--wait", "--format", "json")

    assert result.exit_code == 5
    assert parsed(result, "json", "run")["run"]["outcome"] == "NO_CAPACITY"
    assert f"run {make.RUN_ID} is accepted" in result.stderr


def test_the_plane_takes_in_what_the_command_publishes(runtender, flights, intake, parsed):
    submit = ("submit", str(flights), "--label", "team=planning", "--run-limit", "90m", "--format", "json")
    accepted = parsed(runtender(*submit, "--request-id", "one", topics=intake), "json", "answer")
    again = parsed(runtender(*submit, "--request-id", "one", topics=intake), "json", "answer")
    duplicate = parsed(runtender(*submit, topics=intake), "json", "answer")
    run = parsed(runtender("describe", accepted["run_id"], "--format", "json"), "json", "run")

    assert accepted["state"] == "accepted"
    assert accepted["jobs"] == {"statistical": f"sf-{accepted['run_id']}-statistical-a1"}
    assert again == accepted
    assert (duplicate["state"], duplicate["run_id"]) == ("duplicate", accepted["run_id"])
    assert [job["phase"] for job in run["jobs"]] == ["PENDING"]
    assert run["run"]["limits"]["run_s"] == 5400


def test_the_plane_takes_in_a_priority(runtender, flights, intake, parsed):
    submitted = runtender("submit", str(flights), "--priority", "5", "--format", "json", topics=intake)
    run_id = parsed(submitted, "json", "answer")["run_id"]
    run = parsed(runtender("describe", run_id, "--format", "json"), "json", "run")
    assert [job["plan"]["priority"] for job in run["jobs"]] == [5]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param([], {}, id="not said"),
        pytest.param(["--priority", "0"], {}, id="the usual one"),
        pytest.param(["--priority", "7"], {"priority": 7}, id="higher"),
        pytest.param(["--priority", "-100"], {"priority": -100}, id="the lowest"),
    ],
)
def test_a_priority_stands_in_the_message(runtender, flights, mailbox, options, said):
    runtender("submit", str(flights), *options)
    (message,) = mailbox.messages
    assert {key: value for key, value in message.items() if key == "priority"} == said


@pytest.mark.parametrize("priority", ["101", "-101", "high", "1.5"])
def test_a_priority_that_is_none_is_a_usage_error(runtender, flights, mailbox, priority):
    result = runtender("submit", str(flights), "--priority", priority)
    assert result.exit_code == 2
    assert "--priority" in result.stderr
    assert mailbox.messages == []


def test_a_timer_that_fires_twice_is_told_what_it_started_the_first_time(runtender, flights, intake, parsed):
    submit = ("submit", str(flights), "--every", "1d", "--format", "json")
    accepted = parsed(runtender(*submit, topics=intake), "json", "answer")
    result = runtender(*submit, topics=intake)
    duplicate = parsed(result, "json", "answer")

    assert result.exit_code == 0
    assert (duplicate["state"], duplicate["run_id"]) == ("duplicate", accepted["run_id"])
    assert "starts no attempt: this period's attempt was started before" in result.stderr


def test_the_plane_tells_a_refused_submit_why(runtender, flights, intake, parsed):
    submit = ("submit", str(flights), "--format", "json")
    runtender(*submit, topics=intake)
    result = runtender(*submit, "--force", topics=intake)

    assert result.exit_code == 2
    assert parsed(result, "json", "answer")["state"] == "rejected"
    assert "is still alive; cancel it first, or wait for its end" in result.stderr


def test_the_plane_takes_in_a_cancel(runtender, flights, intake, parsed):
    submitted = runtender("submit", str(flights), "--format", "json", topics=intake)
    run_id = parsed(submitted, "json", "answer")["run_id"]
    result = runtender("cancel", run_id, "--format", "json", topics=intake)
    run = parsed(runtender("describe", run_id, "--format", "json"), "json", "run")

    assert parsed(result, "json", "answers")["answers"][0]["state"] == "accepted"
    assert run["jobs"][0]["cancel_requested"] is True


_BAD_CONFIGS = {
    "an unknown field": (
        {"modles": ["theta"]},
        'modles: "modles" is not a known field; did you mean "models"?',
    ),
    "a wrong type": ({"models": "theta"}, "models: "),
    "missing data": ({"data": None}, "data"),
    "an unknown model": ({"models": ["thetta"]}, 'did you mean "theta"?'),
    "a runtime that is not served": ({"python_runtime": "spark"}, "python_runtime: "),
    "a model that is not served": ({"models": ["arima_plus"]}, "BigQuery"),
}


@pytest.mark.parametrize(("change", "words"), _BAD_CONFIGS.values(), ids=_BAD_CONFIGS)
def test_a_config_is_refused_with_its_field_before_publishing(
    runtender, flights, mailbox, config, change, words
):
    changed = {key: value for key, value in {**config, **change}.items() if value is not None}
    flights.write_text(json.dumps(changed))
    result = runtender("submit", str(flights))

    assert result.exit_code == 2
    assert words in result.stderr
    assert mailbox.messages == []


def test_all_faults_of_message_and_config_are_told_at_once(runtender, flights, mailbox, config):
    flights.write_text(json.dumps({**config, "modles": [], "python_runtime": "sprak"}))
    result = runtender("submit", str(flights), "--label", "Team=x", "--package-uri", "worker.zip")

    assert result.exit_code == 2
    fields = {line.split(":")[1].strip() for line in result.stderr.splitlines()}
    assert fields == {"labels.Team", "package_uri", "modles", "python_runtime"}
    assert mailbox.messages == []


# Ten times ten times ..., 10 TB in all, in 1,601 characters.
_ALIASES = f"a0: &a0 {'x' * 1000}\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 11)
)
_UNREADABLE = {
    "not there": (None, "cannot be read"),
    "not JSON": ('{"run_name": ', "is not readable"),
    "not YAML": ("run_name: [", "is not readable"),
    "no object": ("[1, 2]", "holds a list, not an object"),
    "no number": ('{"run_name": NaN}', "NaN is no JSON number"),
    "endlessly nested": ("[" * 100_000, "is not readable"),
    "empty": ("", "holds a NoneType, not an object"),
    "a key of JSON given twice": ('{"data": {"horizon": 7, "horizon": 28}}', "'horizon' is given twice"),
    "a key of YAML given twice": ("data:\n  horizon: 7\n  horizon: 28\n", "'horizon' is given twice"),
    "a key that is a list": ("? [a, b]\n: c\n", "unhashable key"),
    "aliases of aliases": (_ALIASES, "is larger than 16 MiB when its aliases are written out"),
}


@pytest.mark.parametrize(("content", "words"), _UNREADABLE.values(), ids=_UNREADABLE)
def test_an_unreadable_config_is_a_usage_error(runtender, mailbox, tmp_path, content, words):
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    result = runtender("submit", str(path))

    assert result.exit_code == 2
    assert words in result.stderr
    assert mailbox.messages == []


def test_a_binary_file_is_no_config(runtender, tmp_path):
    path = tmp_path / "panel.parquet"
    path.write_bytes(b"PAR1\xff\xfe")
    result = runtender("submit", str(path))

    assert result.exit_code == 2
    assert "is not UTF-8 text" in result.stderr
