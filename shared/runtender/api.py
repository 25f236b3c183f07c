"""The Python API: submit a run, look at it, follow it, end it.

    from runtender import submit, watch

    receipt = submit("flights.json", run_limit=timedelta(minutes=90), labels={"team": "demand"})
    for seen in watch(receipt.run_id):
        print(seen.run.status, [job.phase for job in seen.latest])

Which plane is meant is settled at the first call, as for the command line: the environment, a local cloud that runs in this
folder, `.runtender.toml`, the person's file, gcloud's project. `connect` names one instead. What went wrong is a
`RuntenderError`: `Rejected` for what must be mended first, `Retryable` for what may go through later, `UnknownRun`,
`NoAnswer`, and `ClientError` where no plane can be reached.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Literal

from runtender.client.errors import ClientError, NoAnswer, UnknownRun
from runtender.client.records import RunRecord, load_run
from runtender.client.requests import AnswerState, fetch_answer, new_request_id, request_cancel
from runtender.client.settings_file import variable_of
from runtender.client.submission import Wishes, submit_config
from runtender.client.watching import records
from runtender.client.world import World, configure, open_world
from runtender.errors import Fault, Rejected, Retryable, RuntenderError
from runtender.model import Job, Outcome, Phase, Run, SubmitKind

__all__ = [
    "ClientError",
    "Job",
    "NoAnswer",
    "Outcome",
    "Phase",
    "Receipt",
    "Rejected",
    "Retryable",
    "Run",
    "RunRecord",
    "RuntenderError",
    "SubmitKind",
    "UnknownRun",
    "World",
    "cancel",
    "connect",
    "get",
    "submit",
    "watch",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What the plane did with a request.

    `duplicate` says that the run was there before and nothing new was started; `notes` say why, and which series of its
    panel a run cannot forecast. `jobs` are the run's newest job keys by family.
    """

    request_id: str
    run_id: str
    duplicate: bool
    jobs: Mapping[str, str]
    notes: tuple[str, ...] = ()


def submit(  # noqa: PLR0913 - what can be asked for, each by its name
    config: Mapping[str, Any] | str | os.PathLike[str],
    *,
    kind: SubmitKind | Literal["forecast", "task"] = SubmitKind.FORECAST,
    force: bool = False,
    every: timedelta | None = None,
    run_limit: timedelta | None = None,
    capacity_wait: timedelta | None = None,
    max_cost_usd: float | None = None,
    labels: Mapping[str, str] | None = None,
    priority: int = 0,
    models: Sequence[str] = (),
    families: Sequence[str] = (),
    image: str | None = None,
    package_uri: str | None = None,
    entrypoint: str | None = None,
    request_id: str | None = None,
    plane: World | None = None,
) -> Receipt:
    """Check a config, publish it, and return what the plane made of it.

    `config` is the config itself, or a JSON or YAML file or `gs://` URI that holds it. `force` starts a new attempt of
    what has run before, `every` at most one per period. A run that may cost more than `max_cost_usd` is rejected. Where
    the plane limits what runs at once, a higher `priority` (-100 to 100) goes first.
    `request_id` is your own id of the request: repeated, it changes nothing. Raises `Rejected` with all faults, found
    here or by the plane, and `NoAnswer` if the plane does not answer.
    """
    world = plane or _plane()
    wishes = Wishes(
        kind=SubmitKind(kind),
        force=force,
        every=every,
        run_limit=run_limit,
        capacity_wait=capacity_wait,
        max_cost_usd=max_cost_usd,
        labels=labels or {},
        priority=priority,
        models=models,
        families=families,
        image=image,
        package_uri=package_uri,
        entrypoint=entrypoint,
    )
    request_id = request_id or new_request_id()
    panel = submit_config(world, _content(config, world), request_id, wishes)
    return _accepted(world, request_id, panel.warnings)


def get(run_id: str, *, plane: World | None = None) -> RunRecord:
    """Return a run with all its jobs as they are now; raises `UnknownRun`."""
    return load_run((plane or _plane()).store, run_id)


def watch(
    run_id: str, *, to_rest: bool = False, plane: World | None = None
) -> Generator[RunRecord, None, None]:
    """Yield a run as it is now and after each change, until its outcome is known; with `to_rest`, until nothing is left.

    Of the header and of each job the versions come in order. Each record has the families' newest jobs, as far as they
    have been seen; the last has all jobs. A lost connection is taken up again; raises `Retryable` when that has not
    worked for five minutes, and `UnknownRun` at once.
    """
    world = plane or _plane()
    load_run(world.store, run_id)
    return _watched(world, run_id, to_rest=to_rest)


def cancel(run_id: str, *, plane: World | None = None) -> Receipt:
    """Ask the plane to end a run, and wait until it has the wish; `watch` shows the end. Raises `UnknownRun`, or as `submit`."""
    world = plane or _plane()
    return _accepted(world, request_cancel(world, run_id))


def connect(**settings: str) -> World:
    """Return the plane that `settings` name, by their keys in a settings file: `connect(project_id="p", code_bucket="b")`.

    What is not named comes from where it always does. Google's clients read the addresses of emulators from the
    environment, so this process's environment is made to say the same. Raises `Rejected` for settings that are missing
    or wrong.
    """
    configure({variable_of(key): value for key, value in settings.items()})
    return open_world()


@cache
def _plane() -> World:
    return connect()


def _content(config: Mapping[str, Any] | str | os.PathLike[str], world: World) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    from runtender.client.config_file import read_config  # noqa: PLC0415 - needs YAML, which a mapping does not

    return read_config(os.fspath(config), world.objects)


def _accepted(world: World, request_id: str, warnings: tuple[str, ...] = ()) -> Receipt:
    answer = fetch_answer(world, request_id)
    if answer.state is AnswerState.REJECTED or answer.run_id is None:
        raise Rejected(Fault(field="", problem=error) for error in answer.errors)
    return Receipt(
        request_id=request_id,
        run_id=answer.run_id,
        duplicate=answer.state is AnswerState.DUPLICATE,
        jobs=answer.jobs,
        notes=(*warnings, *answer.errors),
    )


def _watched(world: World, run_id: str, *, to_rest: bool) -> Generator[RunRecord, None, None]:
    for record in records(world, run_id):
        if _is_over(record, to_rest=to_rest):
            # The header may be seen before the jobs that it sums up.
            yield load_run(world.store, run_id)
            return
        yield record


def _is_over(record: RunRecord, *, to_rest: bool) -> bool:
    if to_rest:
        return all(entry.phase is Phase.DONE for entry in record.run.families.values())
    return record.run.outcome is not None
