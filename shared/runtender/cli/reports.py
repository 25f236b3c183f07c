"""Runs and jobs as tables for people: what `list`, `describe` and `wait` print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from runtender.cli.filters import took
from runtender.cli.job_words import cells, elapsed, placements, state, workers
from runtender.cli.parts import Part, Table, facts, heading, table
from runtender.cli.text import moment, span
from runtender.client.records import RunRecord
from runtender.model import CleanupState, Deadlines, HistoryRow, Job, KubernetesPlan, Run


def list_parts(runs: Iterable[Run], now: datetime, places: Mapping[str, int]) -> Iterator[Part]:
    """Show one line per run, with its place in the queue where there is one."""
    columns = ["RUN", "STATUS", "OUTCOME", "FAMILIES", "CREATED", "TOOK"]
    if places:
        columns.append("QUEUE")
    rows = [
        (
            run.run_id,
            run.status,
            run.outcome.value if run.outcome else "",
            ", ".join(run.families),
            moment(run.created_at),
            span(took(run, now)),
            *([str(places.get(run.run_id, ""))] if places else ()),
        )
        for run in runs
    ]
    yield table(columns, rows, numbers=["TOOK", "QUEUE"])


def outcome_parts(record: RunRecord) -> Iterator[Part]:
    """Show how a run ended: the header and one line per job."""
    yield _header(record.run)
    yield heading("Jobs")
    yield _jobs(record.jobs)


def outcomes_parts(records: Sequence[RunRecord]) -> Iterator[Part]:
    """Show how runs ended: one of them in full, several in a line per job."""
    if len(records) == 1:
        yield from outcome_parts(records[0])
        return
    yield _jobs([job for record in records for job in record.jobs], named=True)


def run_parts(record: RunRecord, now: datetime) -> Iterator[Part]:
    """Show everything there is to know about a run."""
    yield from outcome_parts(record)
    for job in record.jobs:
        yield heading(job.job_key)
        yield _job_facts(job, now)
        yield from _part("Placements that failed", _ledger(job))
        yield from _part("Not to be tried for now", _blocked(job, now))
        yield from _part("Resources", _resources(job))
        yield from _part("History", _history(job))


def history_parts(rows: Iterable[tuple[Job, HistoryRow]]) -> Iterator[Part]:
    """Show one line per step, with the job that took it."""
    cells = [
        (
            moment(row.at),
            job.family,
            str(job.attempt),
            row.phase.value,
            row.outcome.value if row.outcome else "",
            row.cause,
            row.detail,
        )
        for job, row in rows
    ]
    columns = ("AT", "FAMILY", "ATTEMPT", "PHASE", "OUTCOME", "CAUSE", "DETAIL")
    yield table(columns, cells, numbers=["ATTEMPT"])


def _part(title: str, content: Table) -> Iterator[Part]:
    if content.rows:
        yield heading(title)
        yield content


def _header(run: Run) -> Part:
    return facts(
        [
            ("Run", run.run_id),
            ("Status", run.status),
            ("Outcome", run.outcome.value if run.outcome else ""),
            ("Created", moment(run.created_at)),
            ("Finished", moment(run.finished_at) if run.finished_at else ""),
            ("Requested by", run.requested_by),
            ("Labels", _pairs(run.labels)),
            ("Run limit", span(run.limits.run) if run.limits.run else ""),
            ("Capacity wait", span(run.limits.capacity_wait) if run.limits.capacity_wait else ""),
        ]
    )


def _jobs(jobs: Iterable[Job], *, named: bool = False) -> Part:
    """Make a line per job, which begins with its run if it is `named`."""
    columns = (
        "FAMILY", "ATTEMPT", "STATE", "CLEANUP", "PLACEMENTS", "LANDED", "PROVISION", "EXECUTE", "TOTAL",
    )  # fmt: skip
    rows = [
        (
            *((job.run_id,) if named else ()),
            job.family,
            str(job.attempt),
            state(job),
            job.cleanup.state.value,
            str(placements(job)),
            cells(job),
            span(job.phases.provision_s),
            span(job.phases.execute_s),
            span(job.phases.total_wall_s),
        )
        for job in jobs
    ]
    numbers = ["ATTEMPT", "PLACEMENTS", "PROVISION", "EXECUTE", "TOTAL"]
    return table(("RUN", *columns) if named else columns, rows, numbers=numbers)


def _job_facts(job: Job, now: datetime) -> Part:
    return facts(
        [
            ("Phase", job.phase.value),
            ("Detail", job.detail),
            ("Runtime", " ".join((job.runtime, job.plan.machine_type, job.plan.accelerator_type))),
            ("Cluster", _cluster(job.plan.kubernetes)),
            ("Workers", _workers(job)),
            ("Models", ", ".join(job.plan.models)),
            ("Image", job.plan.image_uri),
            ("Elapsed", elapsed(job, now)),
            ("Walk", _walk(job)),
            *_deadlines(job.deadlines),
            ("Cancel requested", "yes" if job.cancel_requested else ""),
            ("Cleanup", _cleanup(job)),
            ("Next look", moment(job.wake_at) if job.wake_at else ""),
        ]
    )


def _cluster(plan: KubernetesPlan | None) -> str:
    if plan is None:
        return ""
    return f"{plan.cluster_name} in {plan.cluster_location or 'no place yet'}, namespace {plan.namespace}"


def _workers(job: Job) -> str:
    """Say which workers are at it, done or failed, by the numbers that Kubernetes gives them."""
    if job.indexes is None:
        return ""
    words = (
        workers(job),
        f"{job.indexes.active} active" if job.indexes.active else "",
        f"done {job.indexes.completed}" if job.indexes.completed else "",
        f"failed {job.indexes.failed}" if job.indexes.failed else "",
    )
    return "; ".join(filter(None, words))


def _deadlines(deadlines: Deadlines) -> Iterator[tuple[str, str]]:
    named = {
        "Capacity until": deadlines.capacity,
        "Started by": deadlines.boot,
        "Runs until": deadlines.run,
    }
    yield from ((name, moment(at)) for name, at in named.items() if at is not None)


def _cleanup(job: Job) -> str:
    if job.cleanup.state is CleanupState.NONE:
        return ""
    tries = f"{job.cleanup.tries} tries" if job.cleanup.tries else ""
    return ", ".join(filter(None, (job.cleanup.state.value, tries, job.cleanup.reason)))


def _walk(job: Job) -> str:
    """Say where the search for capacity stands."""
    walk, places = job.walk, job.plan.placements
    following = places[walk.order[walk.next]].label if walk.next < len(walk.order) else ""
    words = (
        f"pass {walk.passes + 1}",
        f"{walk.attempts} failed{_of_at_most(job)}" if walk.attempts else "",
        f"next {following}" if following and job.outcome is None else "",
        f"not before {moment(walk.resume_at)}" if walk.resume_at and job.outcome is None else "",
        "exhausted" if walk.exhausted else "",
    )
    return ", ".join(filter(None, words))


def _of_at_most(job: Job) -> str:
    bound = job.plan.walk.max_attempts
    return f" of at most {bound}" if bound else ""


def _blocked(job: Job, now: datetime) -> Table:
    rows = [
        (block.scope.value, block.name, moment(block.until))
        for block in job.walk.blocked
        if block.until > now
    ]
    return table(("SCOPE", "NAME", "UNTIL"), rows)


def _ledger(job: Job) -> Table:
    rows = [
        (
            moment(entry.at),
            entry.candidate,
            entry.verdict.value,
            entry.code,
            span(entry.elapsed_s),
            entry.message,
        )
        for entry in job.walk.ledger
    ]
    return table(("AT", "PLACE", "VERDICT", "CODE", "TOOK", "MESSAGE"), rows, numbers=["TOOK"])


def _resources(job: Job) -> Table:
    rows = [
        (
            str(row.placement + 1),
            str(row.try_number + 1),
            row.kind.value,
            row.name,
            row.location,
            row.state.value,
            moment(row.since),
            row.nonce,
        )
        for row in job.resources
    ]
    columns = ("PLACEMENT", "TRY", "KIND", "NAME", "LOCATION", "STATE", "SINCE", "NONCE")
    return table(columns, rows, numbers=["PLACEMENT", "TRY"])


def _history(job: Job) -> Table:
    rows = [
        (moment(row.at), row.phase.value, row.outcome.value if row.outcome else "", row.cause, row.detail)
        for row in job.history
    ]
    return table(("AT", "PHASE", "OUTCOME", "CAUSE", "DETAIL"), rows)


def _pairs(labels: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
