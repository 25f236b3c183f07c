"""`runtender completion`: the script by which a shell completes commands, options and the names of runs."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from runtender.cli.output import Format, emit, with_format

_PROGRAM = "runtender"
_VARIABLE = "_RUNTENDER_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@with_format
def completion(chosen: Format, shell: str) -> None:
    """Print what makes SHELL complete runtender's commands, options and runs.

    For bash: eval "$(runtender completion bash)" in ~/.bashrc. For zsh the same in ~/.zshrc. For fish: runtender
    completion fish > ~/.config/fish/completions/runtender.fish.
    """
    made = get_completion_class(shell)
    assert made is not None  # noqa: S101  # the choices are click's own
    script = made(click.get_current_context().find_root().command, {}, _PROGRAM, _VARIABLE).source()
    emit(chosen, {"shell": shell, "script": script}, lambda: [script.strip("\n")])
