"""Builders: everything has a default, so that a test shows only what matters to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtender.decide import Context, Decision, Look, LookKind, Tombstone, decide, wanted
from runtender.ids import job_key, key_digest, nonce, request_uuid
from runtender.model import (
    Deadlines,
    Job,
    JobPlan,
    KubernetesPlan,
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
from runtender.observed import (
    LiveState,
    MarkerPair,
    PodSeen,
    PodsSeen,
    Present,
    Seen,
    Trouble,
    TroubleKind,
    WorkerSet,
    WorkersVerdict,
)

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


@dataclass(frozen=True)
class Stepped:
    """One step: what was looked at, the tombstones that were written, and what was decided in the end."""

    asked: tuple[LookKind, ...]
    tombstones: tuple[Tombstone, ...]
    decision: Decision

    @property
    def job(self) -> Job:
        return self.decision.job

    @property
    def end(self) -> tuple[Any, ...]:
        return self.job.outcome, self.job.reason


_UID = "uid-1"
_REGISTERS = {
    LookKind.MARKERS: "markers",
    LookKind.SIGHT: "sights",
    LookKind.SUMMARY: "summaries",
    LookKind.PODS: "pods",
    LookKind.REMAINS: "remains",
}


class ManyWorkers(Builders):
    """The same of an Indexed Job with four workers on a standing cluster."""

    def plan(self, **changes: Any) -> JobPlan:
        kubernetes = KubernetesPlan(
            mode="job",
            cluster_name="standing",
            cluster_location="us-central1-a",
            job_deadline=timedelta(hours=3),
            pod_deadline=timedelta(hours=2),
        )
        plan = super().plan(
            runtime="gke",
            worker_count=4,
            kubernetes=kubernetes,
            placements=(Placement(region="us-central1", zone="us-central1-a"),),
            walk=WalkPolicy(preflight=False),
        )
        return replace(plan, **changes)

    def job(self, **changes: Any) -> Job:
        return super().job(**{"runtime": "gke", **changes})

    def row(self, placement: int = 0, **changes: Any) -> Resource:
        known = {"kind": ResourceKind.JOB, "location": "us-central1-a", "target_id": _UID, "place": 0}
        return super().row(placement, **{**known, **changes})

    def provisioning(self, *, row: Resource | None = None, **changes: Any) -> Job:
        job = super().provisioning(row=row, **changes)
        # Nothing has a node yet, and may be given one with the last of the patience for room.
        boot = job.deadlines.capacity + timedelta(seconds=1800)
        return replace(job, deadlines=replace(job.deadlines, boot=boot))

    def unanswered(self, **changes: Any) -> Resource:
        """A row whose create was sent and whose holder never told what became of it."""
        unknown = {
            "state": ResourceState.INTENDED,
            "target_id": None,
            "created_at": None,
            "confirmed_at": None,
        }
        return self.row(**{**unknown, **changes})

    def sight(self, row: Resource, state: LiveState = LiveState.RUNNING, **changes: Any) -> Present:
        changes.setdefault("workers", self.workers())
        return super().sight(row, state, **{"uid": _UID, **changes})

    def workers(self, verdict: WorkersVerdict = WorkersVerdict.RUNNING, **changes: Any) -> WorkerSet:
        told = WorkerSet(verdict=verdict, detail=str(verdict).lower(), completions=4, started_at=self.at(1))
        return replace(told, **changes)

    def finished(self, row: Resource, verdict: WorkersVerdict, **changes: Any) -> Present:
        whole = verdict is WorkersVerdict.SUCCEEDED
        counts = {"succeeded": 4, "completed_indexes": "0-3"} if whole else {"failed": 1}
        return self.sight(row, workers=self.workers(verdict, **{**counts, **changes}))

    def pod(self, index: int = 0, **changes: Any) -> PodSeen:
        return replace(
            PodSeen(name=f"w-{index}", uid=f"pod-{index}", phase="Pending", index=index), **changes
        )

    def failed_pod(self, index: int = 0, **changes: Any) -> PodSeen:
        return self.pod(index, **{"phase": "Failed", **changes})

    def waiting(self, kind: TroubleKind, since: float = 0, **changes: Any) -> PodsSeen:
        trouble = Trouble(kind=kind, reason="Native", message="in their own words", since=self.at(since))
        return PodsSeen(pods=(self.pod(),), trouble=trouble, **changes)

    def step(self, job: Job, at: float, *, thorough: bool = True, **there: Any) -> Stepped:
        """Look, decide, and write tombstones as the engine does. What `there` does not have cannot be read."""
        ctx, asked, seen = self.ctx(at, thorough=thorough), list[Look](), Seen()
        there = {"markers": MarkerPair(), **there}
        while looks := [look for look in wanted(job, seen, ctx) if look not in asked]:
            asked += looks
            for look in looks:
                if look.kind is LookKind.CELLS:
                    seen = replace(seen, cells=there.get("cells"))
                elif look.kind.value in there:
                    name = _REGISTERS[look.kind]
                    register: Any = {**getattr(seen, name), look.nonce: there[look.kind.value]}
                    seen = replace(seen, **{name: register})
        decision = decide(job, seen, ctx)
        written = decision.tombstones
        if written:
            word = self.tombstone(written[0].reason, at, detail=written[0].detail)
            known = seen.markers.get(written[0].nonce, MarkerPair())
            pair = replace(known, terminal=word, terminal_stored=True)
            decision = decide(job, replace(seen, markers={written[0].nonce: pair}), ctx)
        return Stepped(asked=tuple(look.kind for look in asked), tombstones=written, decision=decision)


@pytest.fixture
def many() -> ManyWorkers:
    return ManyWorkers()
