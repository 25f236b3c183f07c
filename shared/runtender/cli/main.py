"""The command `runtender`: submit runs, watch them, and run the plane on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from runtender.cli.exits import Exit, Failure
from runtender.cli.flags import keep_flags, with_settings
from runtender.cli.lazy import LazyGroup
from runtender.errors import RuntenderError

# Where each command is; what it needs is loaded with it.
_PLACES = {
    "submit": "runtender.cli.submit:submit",
    "plan": "runtender.cli.plan:plan",
    "stage": "runtender.cli.stage:stage",
    "list": "runtender.cli.runs:list_runs",
    "describe": "runtender.cli.runs:describe",
    "history": "runtender.cli.runs:history",
    "wait": "runtender.cli.wait:wait",
    "logs": "runtender.cli.logs:logs",
    "cancel": "runtender.cli.steering:cancel",
    "retry": "runtender.cli.steering:retry",
    "dead-letters": "runtender.cli.dead_letters:dead_letters",
    "doctor": "runtender.cli.doctor:doctor",
    "local": "runtender.cli.local_commands:local",
    "completion": "runtender.cli.completion:completion",
}


class Program(LazyGroup):
    """The root of all commands: what went wrong ends here as a message and an exit code, never as a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RuntenderError as error:
            raise Failure(str(error)) from error
        except BrokenPipeError:
            # click's own: whoever read our output has had enough.
            raise
        except OSError as error:
            # The machine's refusal: a full disk, a folder that is read-only or was removed under us.
            problem = error.strerror or str(error)
            raise Failure(f"{error.filename}: {problem}" if error.filename else problem) from error
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)


@click.group(
    cls=Program,
    places=_PLACES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="runtender", prog_name="runtender")
@with_settings
def cli(project: str | None, settings: Mapping[str, str]) -> None:
    """Tend batch forecasts on Google Cloud: find them capacity, watch them, clean up after them.

    Data goes to standard output, everything else to standard error. Exit codes: 0 ok, 1 error, 2 usage, 3 run failed,
    4 timed out, 5 no capacity, 6 cancelled.
    """
    keep_flags(project, settings)
