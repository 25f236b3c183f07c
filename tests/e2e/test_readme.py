"""A newcomer's path: every command of the README's "Run one yourself", word for word, in a local cloud of its own."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "tests" / "cli" / "schemas"
# A forecast on a machine that is busy with other tests.
PATIENCE_S = 300.0


def section(title: str) -> str:
    """The text of the README below a heading, up to the next one of that level."""
    _, _, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"\n{title}\n")
    assert rest, f"the README has no {title!r}"
    level = title.split(maxsplit=1)[0]
    return re.split(rf"\n{level} ", rest)[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(block: str) -> list[str]:
    """The commands of a block, without what is said about them behind a #."""
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.join(words) for line in lines if (words := shlex.split(line, comments=True))]


class Newcomer:
    """Somebody in a fresh checkout, who types what the README says and fills in what the last output said."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._words: dict[str, str] = {}

    def type(self, command: str) -> str:
        """Run a command in the shell, and return what it printed."""
        for word, value in self._words.items():
            command = re.sub(rf"\b{word}\b", value, command)
        # As the README has it: the environment of this checkout comes first.
        script = f'export PATH="$PWD/.venv/bin:$PATH"\n{command}'
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        self._learn(done.stdout)
        return done.stdout

    def _learn(self, output: str) -> None:
        for word, pattern in {"PACKAGE_URI": r"^Package +(gs://\S+)$", "RUN": r"^Run +(\S+)$"}.items():
            if match := re.search(pattern, output, re.MULTILINE):
                self._words[word] = match[1]


@pytest.fixture
def newcomer(tmp_path):
    """A checkout as the commands see it, but with a folder of its own for its local cloud."""
    for name in ("docker", "shared"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    somebody = Newcomer(tmp_path)
    yield somebody
    somebody.type("runtender local down")


def test_every_command_does_what_the_readme_says(newcomer):
    text = section("## Run one yourself")
    (export, up, *others, down) = commands(blocks(text, "sh")[0])
    assert export.startswith("export ")
    assert (up, down) == ("runtender local up", "runtender local down")

    # Machines boot in a second, not in ten; nothing that is printed depends on it.
    document = json.loads(newcomer.type(f"{up} --time-scale 20 --format json"))
    jsonschema.validate(document, json.loads((SCHEMAS / "local_up.json").read_text()))
    printed = {command.split()[1]: newcomer.type(command) for command in others}
    assert "SUCCEEDED" in printed["submit"]
    assert printed["list"].count("\n") == 2, "a header and the run"
    assert "worker started" in printed["history"]
    assert len(printed["logs"].splitlines()) == 5
    assert " problem " not in printed["doctor"]
    status = json.loads(newcomer.type("runtender local status --format json"))
    jsonschema.validate(status, json.loads((SCHEMAS / "local_status.json").read_text()))

    (program,) = blocks(section("### From Python"), "python")
    told = newcomer.type(f"python -c {shlex.quote(program)}").splitlines()
    assert told[-1] == "SUCCEEDED"
    assert told[0].startswith("RUNNING")
    assert newcomer.type(down)
