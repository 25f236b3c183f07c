"""The reference page of the command line, made of the commands themselves: `python -m runtender.cli.reference`.

`make reference` writes it to REFERENCE.md beside this file; a test fails while that is not what the code says.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from runtender.cli.exits import Exit
from runtender.cli.main import cli
from runtender.client.settings_file import PROJECT_FILE, USER_FILE, file_variables

_ON_ALL = frozenset({"format_name", "help"})
PAGE = Path(__file__).with_name("REFERENCE.md")

_HEAD = f"""# The command `runtender`

Made by `make reference` from the commands themselves; what `runtender COMMAND --help` says, on one page.

Every command has `--format table|json|yaml`. Data goes to standard output, everything else to standard error; piped, no
output has colours or control characters.

## Which plane is meant

A setting is taken from the first of these that has it:

1. a flag: `--project ID`, or `--set KEY=VALUE` for any other;
2. the environment: `SF_*` variables;
3. the project's file: `{PROJECT_FILE}` in the working folder, or in the nearest folder above it that has one;
4. the person's file: `~/.config/{USER_FILE}`;
5. gcloud's active project, for the project alone.

A local cloud that runs in the folder, or in one above it, goes before all but flags, and is not mixed with them; `--project`
or `SF_BACKEND=google` looks past it. `runtender doctor` shows which of them won.

Files are TOML. A key is the variable's name in lower case without `SF_`:

```toml
project_id = "my-project"
code_bucket = "my-code"
```
"""


def page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_settings(), *_exits(), "## Commands\n", *_commands(cli, "runtender")])


def _settings() -> Iterator[str]:
    keys = ", ".join(f"`{name.removeprefix('SF_').lower()}`" for name in sorted(file_variables()))
    yield f"Keys: {keys}.\n"


def _exits() -> Iterator[str]:
    meanings = {
        Exit.OK: "done; of a run that was waited for: succeeded",
        Exit.ERROR: "it could not be done; the message says why",
        Exit.USAGE: "the command or its input is wrong",
        Exit.RUN_FAILED: "a run failed, or part of it did",
        Exit.TIMED_OUT: "a run timed out",
        Exit.NO_CAPACITY: "no capacity was found",
        Exit.CANCELLED: "a run was cancelled",
        Exit.INTERRUPTED: "Ctrl-C; the run goes on",
    }
    yield "## Exit codes\n"
    yield "| code | meaning |\n|---|---|"
    yield from (f"| {code.value} | {meanings[code]} |" for code in Exit)
    yield ""


def _commands(command: click.Command, path: str) -> Iterator[str]:
    with click.Context(command, info_name=path) as ctx:
        if isinstance(command, click.Group):
            for name in command.list_commands(ctx):
                if each := command.get_command(ctx, name):
                    yield from _commands(each, f"{path} {name}")
            return
        usage = " ".join((path, *command.collect_usage_pieces(ctx)))
        own = [each for each in command.params if isinstance(each, click.Option) and each.name not in _ON_ALL]
        options = [record for each in own if (record := each.get_help_record(ctx))]
    yield f"### {path}\n"
    yield f"```\n{usage}\n```\n"
    yield f"{inspect.cleandoc(command.help or '')}\n"
    if options:
        yield "| option | |\n|---|---|"
        yield from (f"| `{_cell(names)}` | {_cell(text)} |" for names, text in options)
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").strip()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
