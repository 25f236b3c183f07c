"""The command `runtender`: submit runs, watch them, and run the plane on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from runtender.cli.completion import completion
from runtender.cli.dead_letters import dead_letters
from runtender.cli.doctor import doctor
from runtender.cli.exits import Exit, Failure
from runtender.cli.local_commands import local
from runtender.cli.logs import logs
from runtender.cli.plan import plan
from runtender.cli.runs import describe, history, list_runs
from runtender.cli.stage import stage
from runtender.cli.steering import cancel, retry
from runtender.cli.submit import submit
from runtender.cli.wait import wait
from runtender.cli.world import keep_flags, with_settings
from runtender.errors import RuntenderError


class Program(click.Group):
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


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="runtender", prog_name="runtender")
@with_settings
def cli(project: str | None, settings: Mapping[str, str]) -> None:
    """Tend batch forecasts on Google Cloud: find them capacity, watch them, clean up after them.

    Data goes to standard output, everything else to standard error. Exit codes: 0 ok, 1 error, 2 usage, 3 run failed,
    4 timed out, 5 no capacity, 6 cancelled.
    """
    keep_flags(project, settings)


for _command in (
    submit,
    plan,
    stage,
    list_runs,
    describe,
    history,
    wait,
    logs,
    cancel,
    retry,
    dead_letters,
    doctor,
    local,
    completion,
):
    cli.add_command(_command)
