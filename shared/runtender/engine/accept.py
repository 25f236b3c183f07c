"""From a validated submit message to the documents of a run: plan it, or say why it starts nothing new."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from runtender.capacity.candidates import Region, built_in_regions, parse_catalogue, zonal_candidates
from runtender.capacity.policy import policy_for
from runtender.decide import with_job
from runtender.engine.observe import split_uri
from runtender.engine.plane import Plane
from runtender.errors import Rejected
from runtender.forecast.canonical import run_id_of, to_document
from runtender.forecast.config import parse_config
from runtender.forecast.plan import plan_run
from runtender.forecast.task import parse_task, plan_task, task_run_id
from runtender.ids import TASK, claim_id, config_uri, job_key, key_digest, next_attempt
from runtender.model import Deadlines, HistoryRow, Job, JobPlan, Phase, Run, SubmitKind, SubmitRequest
from runtender.ports import Create, Snapshot, Write
from runtender.wire.codec import encode
from runtender.wire.documents import (
    SCHEMA,
    job_path,
    job_to_document,
    run_from_document,
    run_path,
    run_to_document,
    run_update,
)
from runtender.wire.json_input import read_json_object

_MAX_CONFIG_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """What a submit leads to: the writes to commit beside its request row, and the jobs to look at after."""

    state: str
    run_id: str
    writes: tuple[Write, ...] = ()
    job_keys: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Subject:
    """A config made ready: its run id, how to plan it at given attempts, and what to store for the workers."""

    run_id: str
    families: Mapping[str, JobPlan]
    stored_config: Mapping[str, Any] | None = None
    telemetry: Mapping[str, Any] = field(default_factory=dict)


class Acceptor:
    """Plans runs against the plane's settings and what is already there."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def accept(self, request: SubmitRequest) -> Acceptance:
        """Return the run's documents; raises `Rejected` with all faults, `Retryable` when Storage cannot be reached."""
        raw = request.config if request.config is not None else self._fetch_config(request.config_uri or "")
        run_id = self._run_id(request, raw)
        standing = self._plane.store.get(run_path(run_id))
        run = run_from_document(standing.data) if standing is not None else None
        claim = self._claim(request, run_id)
        if claim is not None and self._plane.store.get(claim.path) is not None:
            return _duplicate(run_id, "this period's attempt was started before")
        if run is not None and (turned_away := _turn_away(request, run)) is not None:
            return turned_away
        subject = self._plan(request, raw, run_id, run)
        self._check_panel(subject)
        if subject.stored_config is not None:
            self._store_config(run_id, subject.stored_config)
        return self._documents(request, subject, run, standing, claim)

    def _run_id(self, request: SubmitRequest, raw: Mapping[str, Any]) -> str:
        if request.kind is SubmitKind.TASK:
            return task_run_id(parse_task(raw))
        return run_id_of(parse_config(raw))

    def _plan(self, request: SubmitRequest, raw: Mapping[str, Any], run_id: str, run: Run | None) -> _Subject:
        placements = zonal_candidates(
            self._plane.settings.region, self._plane.settings.subnetwork_uri, self._catalogue()
        )
        attempts = {
            name: next_attempt(entry.attempt, force=True)[0]
            for name, entry in (run.families if run else {}).items()
        }
        if request.kind is SubmitKind.TASK:
            task = parse_task(raw)
            attempt = attempts.get(TASK, 1)
            plan = plan_task(
                task,
                request,
                self._plane.settings,
                placements=placements,
                walk=policy_for("gce"),
                attempt=attempt,
            )
            return _Subject(run_id=run_id, families={TASK: plan})
        config = parse_config(raw)
        capacity = config.compute.capacity
        override = capacity.services.get("gce")
        walk = policy_for("gce", override, enabled=capacity.enabled)
        plans = plan_run(
            config, request, self._plane.settings, placements=placements, walk=walk, attempts=attempts
        )
        sizing: dict[str, Any] = {
            family: {"family": family, "plans": [plan.resource_plan], "translation": {}, "profile": None}
            for family, plan in plans.items()
        }
        return _Subject(
            run_id=run_id,
            families=plans,
            stored_config=to_document(config),
            telemetry={"sizing": sizing},
        )

    def _catalogue(self) -> tuple[Region, ...]:
        """The user's catalogue from Cloud Storage where one is set, else the built-in map."""
        uri = self._plane.settings.compute_fallback
        if not uri:
            return built_in_regions()
        bucket, name = split_uri(uri)
        body = self._plane.objects.read(bucket, name, limit=_MAX_CONFIG_BYTES)
        if body is None:
            raise Rejected.because(
                "SF_COMPUTE_FALLBACK", f"{uri} does not exist", "upload the catalogue or unset it"
            )
        try:
            return parse_catalogue(read_json_object(body))
        except ValueError as error:
            raise Rejected.because("SF_COMPUTE_FALLBACK", str(error), "mend the catalogue") from error

    def _fetch_config(self, uri: str) -> Mapping[str, Any]:
        bucket, name = split_uri(uri)
        body = self._plane.objects.read(bucket, name, limit=_MAX_CONFIG_BYTES + 1)
        if body is None:
            raise Rejected.because(
                "config_uri", f"{uri} does not exist", "upload the config before the message"
            )
        if len(body) > _MAX_CONFIG_BYTES:
            raise Rejected.because("config_uri", f"{uri} is larger than 8 MiB", "store a smaller config")
        try:
            return read_json_object(body)
        except ValueError as error:
            problem = f"{uri} is no JSON object: {error}"
            raise Rejected.because("config_uri", problem, "store one JSON object") from error

    def _check_panel(self, subject: _Subject) -> None:
        """A panel that is not there would cost a machine to find out."""
        for uri in {plan.source_table for plan in subject.families.values()}:
            if not uri.startswith("gs://"):
                continue
            stored = self._plane.objects.stat(*split_uri(uri))
            if stored is None:
                raise Rejected.because(
                    "data.source_table", f"{uri} does not exist", "upload the panel, or correct the URI"
                )
            if stored.size == 0:
                raise Rejected.because("data.source_table", f"{uri} is empty", "upload a panel with rows")

    def _store_config(self, run_id: str, config: Mapping[str, Any]) -> None:
        bucket, name = split_uri(config_uri(self._plane.settings.code_bucket, run_id))
        self._plane.objects.put(bucket, name, json.dumps(config, sort_keys=True, indent=2).encode())

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
        subject: _Subject,
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
        return Acceptance(
            state="accepted",
            run_id=subject.run_id,
            writes=tuple(writes),
            job_keys=tuple(job.job_key for job in jobs),
        )


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


def _new_run(request: SubmitRequest, subject: _Subject, now: datetime, token: str) -> Run:
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


def _duplicate(run_id: str, note: str) -> Acceptance:
    return Acceptance(state="duplicate", run_id=run_id, notes=(note,))
