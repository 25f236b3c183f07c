"""Builders: everything has a default, so that a test shows only what matters to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtender.decide import Context
from runtender.ids import job_key, key_digest, nonce, request_uuid
from runtender.model import (
    Deadlines,
    Job,
    JobPlan,
    Marker,
    MarkerStatus,
    Phase,
    Placement,
    Reason,
    Resource,
    ResourceKind,
    ResourceState,
    WalkPolicy,
    Writer,
)
from runtender.observed import LiveState, MarkerPair, Present

T0 = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "flights-0123456789ab"


class Builders:
    """Makes jobs, rows and sights of one run at one moment."""

    t0 = T0

    @staticmethod
    def at(seconds: float) -> datetime:
        return T0 + timedelta(seconds=seconds)

    def ctx(self, seconds: float = 0, **changes: Any) -> Context:
        return replace(Context(now=self.at(seconds), token="me", plane="main"), **changes)

    def plan(self, **changes: Any) -> JobPlan:
        plan = JobPlan(
            runtime="gce",
            name="sf-flights-statistical-a1",
            machine_type="n2-standard-8",
            image_uri="us-docker.pkg.dev/p/r/worker:1",
            status_bucket="code",
            cells_uri="gs://wh/artifacts/r/j",
            logs_uri="gs://code/runs/logs/j",
            placements=tuple(Placement(region="us-central1", zone=f"us-central1-{z}") for z in "abc"),
            walk=WalkPolicy(),
            capacity_wait=timedelta(minutes=45),
            run_limit=timedelta(hours=1),
            max_run_duration=timedelta(hours=2),
        )
        return replace(plan, **changes)

    def job(self, **changes: Any) -> Job:
        key = job_key(RUN, "statistical", 1)
        plan = changes.pop("plan", None) or self.plan()
        job = Job(
            job_key=key,
            key=key_digest(key),
            run_id=RUN,
            family="statistical",
            attempt=1,
            runtime="gce",
            plan=plan,
            deadlines=Deadlines(capacity=T0 + plan.capacity_wait),
            accepted_at=T0,
            wake_at=T0,
        )
        return replace(job, **changes)

    def row(self, placement: int = 0, **changes: Any) -> Resource:
        key = job_key(RUN, "statistical", 1)
        try_number = int(changes.pop("try_number", 0))
        row = Resource(
            kind=ResourceKind.VM,
            name="sf-flights-statistical-a1",
            location=f"us-central1-{'abc'[placement % 3]}",
            placement=placement,
            try_number=try_number,
            nonce=nonce(key, placement, try_number),
            request_id=request_uuid(key, 1, placement, try_number),
            state=ResourceState.CREATED,
            since=T0,
            sent_at=T0,
            created_at=T0,
            confirmed_at=T0,
            target_id="77",
        )
        return replace(row, **changes)

    def provisioning(self, *, row: Resource | None = None, **changes: Any) -> Job:
        row = row or self.row()
        boot = T0 + timedelta(seconds=1800)
        base = self.job(
            phase=Phase.PROVISIONING,
            resources=(row,),
            deadlines=Deadlines(capacity=T0 + timedelta(minutes=45), boot=boot),
        )
        return replace(base, **changes)

    def running(self, *, row: Resource | None = None, started: float = 60, **changes: Any) -> Job:
        base = self.provisioning(row=row)
        deadlines = replace(base.deadlines, run=self.at(started) + base.plan.run_limit)
        return replace(base, phase=Phase.RUNNING, started_at=self.at(started), deadlines=deadlines, **changes)

    def sight(self, row: Resource, state: LiveState = LiveState.RUNNING, **changes: Any) -> Present:
        key = key_digest(job_key(RUN, "statistical", 1))
        sight = Present(
            state=state,
            native_state=state.value,
            uid="77",
            nonce=row.nonce,
            key=key,
            plane="main",
            created_at=T0,
        )
        return replace(sight, **changes)

    def marker(
        self, status: MarkerStatus = MarkerStatus.SUCCEEDED, at: float = 100, **changes: Any
    ) -> Marker:
        exit_code = {MarkerStatus.SUCCEEDED: 0, MarkerStatus.FAILED: 3}.get(status)
        marker = Marker(status=status, writer=Writer.GUEST, exit_code=exit_code, recorded_at=self.at(at))
        return replace(marker, **changes)

    def started(self, at: float = 60) -> Marker:
        return self.marker(MarkerStatus.RUNNING, at)

    def ended(self, terminal: Marker | None, *, started_at: float | None = 60) -> MarkerPair:
        started = None if started_at is None else self.started(started_at)
        return MarkerPair(started=started, terminal=terminal, terminal_stored=True)

    def tombstone(self, reason: Reason | None, at: float = 100, **changes: Any) -> Marker:
        return self.marker(MarkerStatus.INTERRUPTED, at, writer=Writer.PLANE, reason=reason, **changes)


@pytest.fixture
def a() -> Builders:
    return Builders()
