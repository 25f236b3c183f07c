"""From a validated submit message to the documents of a run: plan it, or say why it starts nothing new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from runtender.capacity.admission import broken_alone
from runtender.decide import with_job
from runtender.engine.clusters import GKE, read_clusters, remember_clusters
from runtender.engine.inputs import (
    check_panels,
    fetch_config,
    read_catalogue,
    store_config,
)
from runtender.engine.plane import Plane
from runtender.engine.planning import Asked, Ground, Subject, plan_subject, read_asked
from runtender.engine.tables import read_knowledge, read_profiles
from runtender.errors import Rejected
from runtender.forecast.images import check_images
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.terms import for_attempt
from runtender.ids import JobKey, claim_id, config_uri, job_key, key_digest, next_attempt
from runtender.model import (
    Deadlines,
    HistoryRow,
    Job,
    JobPlan,
    Outcome,
    Phase,
    Run,
    SubmitRequest,
)
from runtender.ports import Create, Snapshot, Write
from runtender.wire.codec import encode
from runtender.wire.documents import (
    SCHEMA,
    job_from_document,
    job_path,
    job_to_document,
    run_from_document,
    run_path,
    run_to_document,
    run_update,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """What a submit leads to: the writes to commit beside its request row, and the jobs to look at after."""

    state: str
    run_id: str
    writes: tuple[Write, ...] = ()
    job_keys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Acceptor:
    """Plans runs against the plane's settings and what is already there."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def accept(self, request: SubmitRequest) -> Acceptance:
        """Return the run's documents; raises `Rejected` with all faults, `Retryable` when Storage cannot be reached."""
        objects = self._plane.objects
        raw = (
            request.config if request.config is not None else fetch_config(objects, request.config_uri or "")
        )
        knowledge = read_knowledge(objects, self._plane.settings)
        asked = read_asked(request, raw, knowledge)
        run_id = asked.run_id
        standing = self._plane.store.get(run_path(run_id))
        run = run_from_document(standing.data) if standing is not None else None
        claim = self._claim(request, run_id)
        if claim is not None and self._plane.store.get(claim.path) is not None:
            return _duplicate(run_id, "this period's attempt was started before")
        if run is not None and (turned_away := _turn_away(request, run)) is not None:
            return turned_away
        subject = plan_subject(asked, self._ground(asked, knowledge), _next_attempts(run))
        self._check_limits(subject.families)
        check_panels(objects, subject.families.values())
        if subject.stored_config is not None:
            store_config(objects, config_uri(self._plane.settings.code_bucket, run_id), subject.stored_config)
        return self._documents(request, subject, run, standing, claim)

    def retry(self, request: SubmitRequest) -> Acceptance:
        """Return the next attempts of a run's families that did not succeed, under the plans they were accepted with."""
        run_id = request.run_id or ""
        standing = self._plane.store.get(run_path(run_id))
        if standing is None:
            raise Rejected.because("run_id", f"no run {run_id!r} is known", "see `runtender list`")
        run = run_from_document(standing.data)
        plans = {family: self._plan_again(run, family) for family in _to_retry(request, run)}
        self._check_limits(plans)
        check_images(self._plane.settings, (plan.image_uri for plan in plans.values()))
        subject = Subject(run_id=run_id, families=plans)
        return self._documents(request, subject, run, standing, None)

    def _check_limits(self, families: Mapping[str, JobPlan]) -> None:
        """Refuse a job that no limit would ever let begin."""
        for family, plan in families.items():
            limit = broken_alone(self._plane.settings.live_limits, plan)
            if limit is not None:
                whose = f" for {'='.join(limit.label)}" if limit.label else ""
                problem = (
                    f"one {plan.machine_type} of {family!r} is more than the plane's limit{whose} allows"
                )
                raise Rejected.because("SF_LIMITS", problem, "choose a smaller machine, or raise the limit")

    def _plan_again(self, run: Run, family: str) -> JobPlan:
        entry = run.families[family]
        snapshot = self._plane.store.get(job_path(entry.job_key))
        if snapshot is None:
            raise Rejected.because("run_id", f"job {entry.job_key!r} is gone", "submit the run again")
        plan = job_from_document(snapshot.data).plan
        key = JobKey(run_id=run.run_id, family=family, attempt=_attempt(run, family))
        return for_attempt(plan, self._plane.settings, key)

    def _ground(self, asked: Asked, knowledge: Knowledge) -> Ground:
        plane, settings = self._plane, self._plane.settings
        # The runtime's API is made only where a run goes there.
        wanted = asked.clusters_wanted(settings, knowledge)
        return Ground(
            settings=settings,
            regions=read_catalogue(plane.objects, settings.compute_fallback),
            knowledge=knowledge,
            stored_profiles=read_profiles(plane.store, asked),
            clusters=read_clusters(settings, plane.apis[GKE], wanted) if wanted else {},
        )

    def _claim(self, request: SubmitRequest, run_id: str) -> Create | None:
        if request.every is None:
            return None
        data = {
            "schema": SCHEMA,
            "run_id": run_id,
            "request_id": request.request_id,
            "claimed_at": self._plane.clock.now(),
        }
        return Create(path=f"claims/{claim_id(run_id, request.published_at, request.every)}", data=data)

    def _documents(
        self,
        request: SubmitRequest,
        subject: Subject,
        run: Run | None,
        standing: Snapshot | None,
        claim: Create | None,
    ) -> Acceptance:
        now, token = self._plane.clock.now(), self._plane.clock.token()
        jobs = [
            _new_job(subject.run_id, family, _attempt(run, family), plan, now, token)
            for family, plan in subject.families.items()
        ]
        header = run or _new_run(request, subject, now, token)
        for job in jobs:
            header = with_job(header, job, now)
        writes: list[Write] = [Create(path=job_path(job.job_key), data=job_to_document(job)) for job in jobs]
        if standing is None:
            writes.append(Create(path=run_path(header.run_id), data=run_to_document(header)))
        else:
            writes.append(run_update(_reopened(header, token), standing))
        if claim is not None:
            writes.append(claim)
        writes += remember_clusters(self._plane, subject.families.values())
        return Acceptance(
            state="accepted",
            run_id=subject.run_id,
            writes=tuple(writes),
            job_keys=tuple(job.job_key for job in jobs),
        )


def _next_attempts(run: Run | None) -> Mapping[str, int]:
    return {family: _attempt(run, family) for family in (run.families if run else ())}


def _attempt(run: Run | None, family: str) -> int:
    entry = run.families.get(family) if run else None
    return next_attempt(entry.attempt if entry else None, force=True)[0]


def _new_job(run_id: str, family: str, attempt: int, plan: JobPlan, now: datetime, token: str) -> Job:
    key = job_key(run_id, family, attempt)
    return Job(
        job_key=key,
        key=key_digest(key),
        run_id=run_id,
        family=family,
        attempt=attempt,
        runtime=plan.runtime,
        plan=plan,
        deadlines=Deadlines(capacity=now + plan.capacity_wait),
        accepted_at=now,
        wake_at=now,
        history=(HistoryRow(at=now, phase=Phase.PENDING, outcome=None, cause="accepted"),),
        version=1,
        token=token,
    )


def _new_run(request: SubmitRequest, subject: Subject, now: datetime, token: str) -> Run:
    asked = encode(request)
    asked.pop("config")
    return Run(
        run_id=subject.run_id,
        kind=request.kind,
        request=asked,
        labels=request.labels,
        requested_by=request.requested_by,
        families={},
        status="RUNNING",
        created_at=now,
        limits=request.limits,
        telemetry=subject.telemetry,
        cost=subject.cost,
        version=1,
        token=token,
    )


def _reopened(header: Run, token: str) -> Run:
    """A new attempt opens the header again: its next end is announced anew."""
    return replace(header, notified_at=None, version=header.version + 1, token=token)


def _turn_away(request: SubmitRequest, run: Run) -> Acceptance | None:
    """Say why an existing run gets no new attempt from this message; None when it does."""
    alive = [entry.job_key for entry in run.families.values() if entry.outcome is None]
    if request.every is not None:
        return (
            _duplicate(run.run_id, f"the last attempt is still running: {', '.join(alive)}")
            if alive
            else None
        )
    if not request.force:
        return _duplicate(run.run_id, "this config was submitted before; send force: true for a new attempt")
    if alive:
        raise Rejected.because(
            "force", f"{', '.join(alive)} is still alive", "cancel it first, or wait for its end"
        )
    return None


def _to_retry(request: SubmitRequest, run: Run) -> tuple[str, ...]:
    unknown = [family for family in request.families if family not in run.families]
    if unknown:
        known = ", ".join(run.families)
        raise Rejected.because(
            "families", f"{', '.join(unknown)} is no family of this run", f"use one of {known}"
        )
    named = {
        name: entry for name, entry in run.families.items() if name in (request.families or run.families)
    }
    alive = [entry.job_key for entry in named.values() if entry.outcome is None]
    if alive:
        raise Rejected.because(
            "run_id", f"{', '.join(alive)} is still alive", "cancel it first, or wait for its end"
        )
    failed = tuple(name for name, entry in named.items() if entry.outcome is not Outcome.SUCCEEDED)
    if not failed:
        raise Rejected.because(
            "run_id", "every family has succeeded", "submit with force: true to run it again"
        )
    return failed


def _duplicate(run_id: str, note: str) -> Acceptance:
    return Acceptance(state="duplicate", run_id=run_id, notes=(note,))
