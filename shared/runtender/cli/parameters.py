"""How values of command line options are read: callbacks for click, by the same rules as the fields of a message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from datetime import timedelta
from io import StringIO
from typing import Any

import click
from click.shell_completion import CompletionItem

from runtender.cli.world import current_world
from runtender.client.records import RunRecord, newest_runs
from runtender.errors import RuntenderError
from runtender.model import Job
from runtender.wire.durations import parse_duration

_OFFERED_RUNS = 50


def run_argument(*, several: bool = False) -> Callable[[Any], Any]:
    """Make the argument RUN: `run_id`, or with `several` at least one in `run_ids`. Shells complete it from the store."""
    if several:
        return click.argument(
            "run_ids", metavar="RUN...", nargs=-1, required=True, shell_complete=_offer_runs
        )
    return click.argument("run_id", metavar="RUN", shell_complete=_offer_runs)


family_option = click.option("--family", metavar="NAME", help="Only this model family.")

max_cost_option = click.option(
    "--max-cost",
    "max_cost_usd",
    metavar="USD",
    type=click.FloatRange(min=0, min_open=True),
    help="Refuse the run if it may cost more US dollars than this.",
)


def chosen_jobs(record: RunRecord, family: str | None, *, attempts: bool = False) -> list[Job]:
    """Return a run's jobs, or those of one family: the newest attempts, or all. Raises a usage error for no family."""
    found = [job for job in (record.jobs if attempts else record.latest) if family in {None, job.family}]
    if not found:
        known = ", ".join(record.run.families)
        raise click.BadParameter(f"{family!r} is no family of the run; it has {known}", param_hint="--family")
    return found


def _offer_runs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the newest runs that begin so; none where the plane cannot be asked, because a shell shows no reasons."""
    try:
        # A shell asks without entering a context, and would show warnings in the middle of the line that is typed.
        with ctx.scope(cleanup=False), redirect_stderr(StringIO()):
            headers = newest_runs(current_world().store, _OFFERED_RUNS)
    except (RuntenderError, click.ClickException):
        return []
    return [
        CompletionItem(header["run_id"], help=header["status"])
        for header in headers
        if header["run_id"].startswith(incomplete)
    ]


def duration(_ctx: click.Context, _param: click.Parameter, value: str | None) -> timedelta | None:
    """Read `90m`, `1h30m` or `45s`."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def names(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[str]:
    """Read names separated by commas; none is an empty list."""
    if value is None:
        return []
    found = [name.strip() for name in value.split(",")]
    if not all(found):
        raise click.BadParameter(f"{value!r} has an empty name; write a,b")
    return found


def labels(_ctx: click.Context, _param: click.Parameter, value: Sequence[str]) -> dict[str, str]:
    """Read any number of `KEY=VALUE`."""
    found = {}
    for text in value:
        key, separator, label = text.partition("=")
        if not key or not separator:
            raise click.BadParameter(f"{text!r} is not KEY=VALUE")
        found[key] = label
    return found
