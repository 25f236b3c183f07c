"""The command as a whole: its verbs, its codes, and what starting it costs."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from runtender.cli.exits import Exit
from runtender.cli.main import cli
from runtender.errors import Rejected, Retryable
from runtender.local.store import MemoryStore

# Seconds of import between a person and `--help`.
_HEAVY = frozenset(
    """
    flask google.cloud.firestore google.cloud.pubsub google.cloud.storage google.auth grpc pandas pyarrow requests
    runtender.local.cloud werkzeug
    """.split()
)
_OF_TABLES = frozenset({"rich", "runtender.cli.drawing", "yaml"})
_OF_SUBMITS = frozenset(
    "runtender.client.checkup runtender.client.preview runtender.client.submission runtender.engine.planning".split()
)
_OF_A_PLANE = _HEAVY | frozenset(
    "runtender.client.world runtender.engine runtender.forecast runtender.model runtender.wiring".split()
)
_TELL_MODULES = """
import sys
from runtender.cli.main import cli
try:
    cli(sys.argv[1:])
finally:
    print(*sys.modules, file=sys.stderr)
    sys.exit(0)
"""


def leaves(command, *path):
    """All commands that do something, by their words."""
    if not isinstance(command, click.Group):
        yield path
        return
    with click.Context(command) as ctx:
        for name in command.list_commands(ctx):
            yield from leaves(command.get_command(ctx, name), *path, name)


def test_help_names_every_verb():
    result = CliRunner().invoke(cli, ["--help"])

    assert result.exit_code == 0
    verbs = {line.split()[0] for line in result.stdout.partition("Commands:")[2].splitlines() if line}
    assert verbs == set(
        """
        submit plan stage list describe history wait logs cancel retry dead-letters doctor local completion
        """.split()
    )


@pytest.mark.parametrize("verb", [*leaves(cli)], ids=" ".join)
def test_every_verb_has_the_three_formats_and_short_help(verb):
    result = CliRunner().invoke(cli, [*verb, "-h"])

    assert result.exit_code == 0
    assert "--format [table|json|yaml]" in result.stdout


def test_the_version_is_the_packages():
    result = CliRunner().invoke(cli, ["--version"])

    assert result.exit_code == 0
    assert result.stdout.startswith("runtender, version ")


def test_the_exit_codes_are_part_of_the_interface():
    assert {each.name: each.value for each in Exit} == {
        "OK": 0,
        "ERROR": 1,
        "USAGE": 2,
        "RUN_FAILED": 3,
        "TIMED_OUT": 4,
        "NO_CAPACITY": 5,
        "CANCELLED": 6,
        "INTERRUPTED": 130,
    }


_USAGE = {
    "no such verb": ["sumbit"],
    "no config": ["submit"],
    "no such option": ["list", "--newest"],
    "a limit of none": ["list", "--limit", "0"],
    "no such format": ["list", "--format", "xml"],
    "no duration": ["submit", "x.json", "--run-limit", "90 minutes"],
    "an empty name": ["submit", "x.json", "--models", "theta,,autoets"],
    "no label": ["submit", "x.json", "--label", "planning"],
    "no folder": ["stage", "nowhere"],
}


@pytest.mark.parametrize("arguments", _USAGE.values(), ids=_USAGE)
def test_wrong_usage_has_its_own_code_and_prints_no_data(runtender, arguments):
    result = runtender(*arguments)

    assert result.exit_code == 2
    assert result.stdout == ""


class Broken(MemoryStore):
    """A store at the wire that answers each query with an error."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def find(self, *_args, **_options):
        raise self._error


_ERRORS = {
    "unreachable": (Retryable("the store cannot be reached"), 1, "error: the store cannot be reached"),
    "forbidden": (
        Rejected.because("jobs", "may not be read", "ask for roles/datastore.viewer"),
        1,
        "error: jobs: may not be read; ask for roles/datastore.viewer",
    ),
    "read-only": (
        OSError(30, "Read-only file system", "/srv/x"),
        1,
        "error: /srv/x: Read-only file system",
    ),
    "interrupted": (KeyboardInterrupt(), 130, ""),
}


@pytest.mark.parametrize(("error", "code", "words"), _ERRORS.values(), ids=_ERRORS)
def test_an_error_is_a_message_and_a_code_never_a_traceback(runtender, error, code, words):
    result = runtender("list", store=Broken(error))

    assert (result.exit_code, result.stdout, result.stderr.strip()) == (code, "", words)


@pytest.fixture
def loaded_by(tmp_path):
    """Run a command in a process of its own, on an empty embedded plane; return the modules that it loaded."""

    def load(*arguments):
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "SF_BACKEND": "embedded",
            "SF_PROJECT_ID": "local",
            "SF_CODE_BUCKET": "local-code",
            "SF_STORE_PATH": str(tmp_path / "store.db"),
            "SF_TOPICS_ENDPOINT": "http://127.0.0.1:1",
        }
        command = [sys.executable, "-c", _TELL_MODULES, *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert "Traceback" not in done.stderr
        return set(done.stderr.splitlines()[-1].split())

    return load


def test_help_loads_every_command_and_no_heavy_library(loaded_by):
    loaded = loaded_by("--help")

    assert {"runtender.cli.submit", "runtender.cli.local_commands"} <= loaded
    assert loaded & _HEAVY == set()


# Of each command: what it loads, so that the test is about something, and what it has no use for.
_LIGHT = {
    "local env": ("runtender.local.stack", _OF_A_PLANE | _OF_TABLES),
    "local down --format json": ("runtender.local.stack", _OF_A_PLANE | _OF_TABLES),
    "local status": ("rich", _OF_A_PLANE),
    "cancel x": ("runtender.local.store", _OF_SUBMITS | _OF_TABLES),
    "list --format json": ("runtender.local.store", _OF_SUBMITS | _OF_TABLES),
}


@pytest.mark.parametrize(("words", "parts"), _LIGHT.items(), ids=_LIGHT)
def test_a_command_loads_what_it_needs_and_nothing_of_others(loaded_by, words, parts):
    needed, others = parts
    loaded = loaded_by(*words.split())

    assert needed in loaded
    assert loaded & others == set()
