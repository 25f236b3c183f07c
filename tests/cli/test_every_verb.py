"""What holds for every verb: its JSON fits its schema, and nothing that it prints into a pipe steers a terminal."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import click
import pytest

from runtender.cli.main import cli
from runtender.model import LedgerEntry, Verdict, Walk

NASTY = "a\x1b[31mred\x1b[0m\x07\x7f\x9b2J\u2028b"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# Of each verb: what to call it with (in capitals: what the fixture below makes), and the schema of what it prints.
VERBS = {
    "submit": ("submit CONFIG", "answer"),
    "plan": ("plan CONFIG", "plan"),
    "stage": ("stage PACKAGE", "package"),
    "list": ("list --filter label.team=*", "runs"),
    "describe": ("describe RUN", "run"),
    "history": ("history RUN", "history"),
    "wait": ("wait RUN OTHER", "ended_runs"),
    "logs": ("logs RUN", "logs"),
    "cancel": ("cancel RUN", "answers"),
    "retry": ("retry RUN", "answer"),
    "dead-letters list": ("dead-letters list", "dead_letters"),
    "dead-letters show": ("dead-letters show LETTER", "dead_letter"),
    "dead-letters redrive": ("dead-letters redrive LETTER", "redriven"),
    "dead-letters discard": ("dead-letters discard LETTER --yes", "discarded"),
    "doctor": ("doctor", "checkup"),
    "local status": ("local status", "local_status"),
    "local down": ("local down", "local_down"),
    "local env": ("local env", "local_env"),
    "local demo": ("local demo --list-scenarios", "scenarios"),
    "completion": ("completion bash", "completion"),
}
# Starts processes; held to its schema where one is started (tests/e2e), as is a demo that runs.
ELSEWHERE = {"local up"}


def leaves(command, *path):
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    with click.Context(command) as ctx:
        for name in command.list_commands(ctx):
            yield from leaves(command.get_command(ctx, name), *path, name)


def test_the_table_has_every_verb():
    assert VERBS.keys() | ELSEWHERE == set(leaves(cli))


@pytest.fixture
def words(make, keep, objects, dispatcher, flights, tmp_path):
    """What the words in capitals stand for, on a plane where every text is as bad as a text can be."""
    entry = LedgerEntry(
        candidate=NASTY,
        verdict=Verdict.TRANSIENT_CAPACITY,
        code="TYPHOON",
        message=NASTY,
        elapsed_s=1.0,
        at=make.ACCEPTED,
    )
    other = "other-0123456789ab"
    for run_id in (make.RUN_ID, other):
        job = make.ended_job("FAILED", run_id=run_id, detail=NASTY, walk=Walk(ledger=(entry,)))
        keep(make.run(job, run_id=run_id, labels={"team": NASTY}, requested_by=NASTY), job)
    log = f"runs/logs/{make.job().job_key}/{make.job().resources[-1].nonce}/0.1.log"
    objects.put("demo-code", log, NASTY.encode())
    package = tmp_path / "worker"
    package.mkdir()
    (package / "__init__.py").write_text("def main(): ...\n")
    return {
        "CONFIG": str(flights),
        "PACKAGE": str(package),
        "RUN": make.RUN_ID,
        "OTHER": other,
        "LETTER": dispatcher.publish("sf-dead-letter", NASTY.encode(), {"reason": NASTY}, datetime.now(UTC)),
    }


@pytest.fixture
def call(runtender, intake, words, tmp_path, monkeypatch, request):
    """Call a verb; the local ones in a folder without a local cloud, but for the one that needs one."""

    def run(line, form):
        folder = request.getfixturevalue("home").folder if line == "local env" else tmp_path
        monkeypatch.chdir(folder)
        arguments = [words.get(word, word) for word in line.split()]
        return runtender(*arguments, "--format", form, topics=intake, settings=intake.plane.settings)

    return run


@pytest.mark.parametrize(("line", "schema"), VERBS.values(), ids=VERBS)
def test_json_fits_its_schema(call, parsed, line, schema):
    parsed(call(line, "json"), "json", schema)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
@pytest.mark.parametrize("line", [line for line, _ in VERBS.values()], ids=VERBS)
def test_nothing_in_a_pipe_steers_a_terminal(call, line, form):
    result = call(line, form)

    assert result.stdout
    assert _CONTROL.findall(result.stdout.replace("\n", "") + result.stderr.replace("\n", "")) == []
    if form == "json":
        json.loads(result.stdout)
