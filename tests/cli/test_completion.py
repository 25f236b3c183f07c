"""What shells are told: a script that they accept, and the runs there are."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from click.shell_completion import ShellComplete

from runtender.cli.main import cli
from runtender.errors import Retryable
from runtender.local.store import MemoryStore


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_accepts_its_script(runtender, parsed, shell, tmp_path):
    result = runtender("completion", shell)
    document = parsed(runtender("completion", shell, "--format", "json"), "json", "completion")

    assert result.exit_code == 0
    assert "_RUNTENDER_COMPLETE" in result.stdout
    assert document["script"].strip("\n") == result.stdout.strip("\n")
    if shutil.which(shell):
        script = tmp_path / "script"
        script.write_text(result.stdout)
        subprocess.run([shell, "-n", str(script)], check=True)


def test_no_other_shell_is_promised(runtender):
    assert runtender("completion", "tcsh").exit_code == 2


@pytest.fixture
def offered(world):
    """Complete a line as a shell asks for it."""

    def offer(*words, incomplete="", obj=world):
        shell = ShellComplete(cli, {"obj": obj}, "runtender", "_RUNTENDER_COMPLETE")
        return [item.value for item in shell.get_completions([*words], incomplete)]

    return offer


@pytest.mark.parametrize("verb", ["describe", "history", "wait", "logs", "cancel", "retry"])
def test_runs_are_offered_newest_first(offered, make, keep, verb):
    for name in ("flights-a", "flights-b", "hotels-c"):
        keep(make.run(run_id=name, created_at=make.ACCEPTED))

    assert sorted(offered(verb, incomplete="flights-")) == ["flights-a", "flights-b"]


def test_a_plane_that_cannot_be_asked_offers_nothing_and_says_nothing(offered, world, capfd):
    class Unreachable(MemoryStore):
        def find(self, *_arguments, **_options):
            raise Retryable("the store cannot be reached")

    object.__setattr__(world, "store", Unreachable())

    assert offered("describe") == []
    assert capfd.readouterr() == ("", "")


def test_where_no_plane_is_meant_nothing_is_offered(offered, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    assert offered("describe", obj=None) == []
    assert capfd.readouterr() == ("", "")
