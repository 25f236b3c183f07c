"""`Engine.step`: where every event ends. Load, observe, decide, save, carry out, save.

An event never carries authority: it only says where to look. Two engines stepping the same job at once are safe: each
save is fenced, each create belongs to the invocation that saved its row.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from runtender.decide import (
    Context,
    Decision,
    Effect,
    KeepLogs,
    SendCreate,
    SendDelete,
    SendDeleteRemains,
    Stir,
    Tombstone,
    decide,
    is_under_way,
    record_create,
    record_delete,
    stirred_by,
)
from runtender.decide.decision import is_set
from runtender.engine.admission import Admissions
from runtender.engine.announce import announce, is_to_be_announced
from runtender.engine.budget import Budget
from runtender.engine.crowd import Crowd
from runtender.engine.observe import Observer
from runtender.engine.plane import Plane
from runtender.engine.saving import Header, Loaded, Saver
from runtender.engine.shortages import Shortages
from runtender.engine.spread import Spread, side_by_side
from runtender.errors import Conflict, RuntenderError
from runtender.ids import MarkerName, gce_status_object, marker_object
from runtender.logs import about
from runtender.model import Admission, CleanupState, Job, Phase, Resource
from runtender.observed import DeleteAnswer, MarkerPair, Present, Seen
from runtender.wire.markers import parse_marker, plane_marker

_LOG = logging.getLogger("runtender.engine")

# A step moves a job through a few states at most; more rounds mean that something is wrong, and a tick will come.
_MOST_ROUNDS = 24
_POLL_S = (1.0, 2.0, 4.0, 5.0)
_MOST_CLAIMS = 3
_NOTHING_SIGHTED: Mapping[str, Present] = {}


class Engine:
    """Steps jobs. One instance serves all events of a process; it keeps nothing between them.

    `spread` takes the steps of several jobs: side by side, or in a simulation, where all order is chosen, by `map`.
    """

    def __init__(self, plane: Plane, *, spread: Spread = side_by_side) -> None:
        self._plane = plane
        self._observer = Observer(plane)
        self._budget = Budget(plane)
        self._admissions = Admissions(plane)
        self._spread = spread

    def step(
        self,
        job_key: str,
        *,
        thorough: bool = False,
        wait: timedelta = timedelta(),
        sighted: Mapping[str, Present] = _NOTHING_SIGHTED,
    ) -> Job | None:
        """Look at a job and take it as far as it will go now.

        `thorough` looks closely although the job is not due. `wait` is how long an open operation may be waited for.
        `sighted` has what a list of this moment shows of workers, by nonce.
        Returns the job as saved last, None when there is no such job. Raises `Retryable` when the world could not
        be reached in a way that only another try can mend.
        """
        saver = Saver(self._plane)
        loaded = saver.load(job_key)
        if loaded is None:
            _LOG.warning("no such job", extra={"job_key": job_key})
            return None
        return self._step(saver, loaded, thorough=thorough, wait=wait, sighted=sighted)

    def notice(self, where: MarkerName) -> Job | None:
        """Look at the job below whose nonce a marker was written, if what it tells can change anything.

        One event of many at about the same time looks for all of them; the others cost a read.
        """
        saver = Saver(self._plane)
        pause = self._plane.settings.timing.index_pause
        for _ in range(_MOST_CLAIMS):
            loaded = saver.load(where.job_key)
            if loaded is None:
                break
            now = self._plane.clock.now()
            stir = stirred_by(loaded.job, where, now, pause)
            if stir is Stir.NOTHING:
                return loaded.job
            if stir is Stir.FOLLOW:
                # Due at the next tick, also if this handler comes to an end before its step does.
                soon = now + pause
                claimed = replace(loaded.job, stirred_at=now, wake_at=min(loaded.job.wake_at or soon, soon))
                try:
                    loaded = saver.save(loaded, claimed)
                except Conflict:
                    # Somebody else has moved the job, or taken the turn.
                    continue
            return self._step(saver, loaded)
        return self.step(where.job_key)

    def admit(self, wait: timedelta = timedelta()) -> None:
        """Let in whom the plane's limits have room for, and step them."""
        self.step_all(self._admissions.admit(), thorough=True, wait=wait)

    def step_all(
        self,
        job_keys: Iterable[str],
        *,
        thorough: bool = False,
        wait: timedelta = timedelta(),
        sighted: Mapping[str, Present] = _NOTHING_SIGHTED,
    ) -> int:
        """Step several jobs side by side; a job that fails is logged and left to its next tick. Returns failures."""
        keys = list(job_keys)
        step = partial(self.step, thorough=thorough, wait=wait, sighted=sighted)
        if len(keys) <= 1:
            return sum(self._safely(step, key) for key in keys)
        return sum(self._spread(partial(self._safely, step), keys))

    def _step(
        self,
        saver: Saver,
        loaded: Loaded,
        *,
        thorough: bool = False,
        wait: timedelta = timedelta(),
        sighted: Mapping[str, Present] = _NOTHING_SIGHTED,
    ) -> Job:
        """Step a job that has just been read."""
        with about(job_key=loaded.job.job_key, run_id=loaded.job.run_id):
            parts = (self._plane, self._observer, self._budget, saver)
            job = _Step(*parts, loaded, thorough=thorough, wait=wait, sighted=sighted).run()
            if job.admission is not loaded.job.admission and job.admission is not Admission.LIVE:
                self.admit(wait)
            return job

    def _safely(self, step: Callable[[str], Job | None], job_key: str) -> bool:
        try:
            step(job_key)
        except RuntenderError as error:
            _LOG.error("step failed", extra={"job_key": job_key, "error": str(error)})
            return True
        return False


class _Step:
    """One invocation's way through one job."""

    def __init__(
        self,
        plane: Plane,
        observer: Observer,
        budget: Budget,
        saver: Saver,
        loaded: Loaded,
        *,
        thorough: bool,
        wait: timedelta,
        sighted: Mapping[str, Present],
    ) -> None:
        self._plane = plane
        self._observer = observer
        self._budget = budget
        self._saver = saver
        self._loaded = loaded
        self._thorough = thorough
        self._token = plane.clock.token()
        self._sighted = sighted
        self._wait_until = plane.clock.now() + wait
        self._polls = 0

    def run(self) -> Job:
        before = self._loaded.job
        for _ in range(_MOST_ROUNDS):
            if not self._round():
                break
        Shortages(self._plane).tell(before, self._loaded.job)
        return self._loaded.job

    def _round(self) -> bool:
        """Observe, decide, save, carry out; true when it is worth going round again at once."""
        before, ctx = self._loaded.job, self._context()
        if before.phase is Phase.DONE:
            return False
        # A list tells of the moment in which the step began.
        sighted, self._sighted = self._sighted, _NOTHING_SIGHTED
        seen = self._observer.see(before, ctx, sighted)
        decision = decide(before, seen, ctx)
        if decision.tombstones:
            seen = self._write_tombstones(before, decision.tombstones, seen)
            decision = decide(before, seen, ctx)
        if any(isinstance(effect, SendCreate) for effect in decision.effects):
            turn = self._budget.draw(before)
            if turn is not None:
                _LOG.info("create waits for its turn", extra={"at": turn.at.isoformat()})
                decision = decide(before, seen, replace(ctx, turn=turn))
        try:
            self._save(before, decision)
        except Conflict:
            # Somebody else moved the job: this decision is void, what they left is looked at afresh.
            reloaded = self._saver.load(before.job_key)
            if reloaded is None:
                return False
            self._loaded = reloaded
            return True
        self._after_save(before, seen)
        if before.outcome is None and self._loaded.job.outcome is not None:
            # What ended the job is to be removed next, and has just been seen.
            self._sighted = _there(seen)
        for effect in decision.effects:
            self._carry_out(effect, ctx.now)
        return self._goes_on(decision)

    def _goes_on(self, decision: Decision) -> bool:
        created = any(isinstance(effect, SendCreate) for effect in decision.effects)
        if created and is_under_way(self._loaded.job):
            return False
        return decision.more or (decision.open_operation and self._poll())

    def _context(self) -> Context:
        now = self._plane.clock.now()
        wake_at = self._loaded.job.wake_at
        return Context(
            now=now,
            token=self._token,
            plane=self._plane.settings.plane_id,
            jitter=self._plane.clock.jitter(),
            timing=self._plane.settings.timing,
            limited=bool(self._plane.settings.live_limits),
            thorough=self._thorough or (wake_at is not None and wake_at <= now),
        )

    def _save(self, before: Job, decision: Decision) -> None:
        if decision.job != before:
            self._loaded = self._saver.save(self._loaded, decision.job)
            after = self._loaded.job
            _LOG.info(
                "job stepped",
                extra={
                    "phase": after.phase,
                    "outcome": after.outcome,
                    "reason": after.reason,
                    "cause": after.history[-1].cause if len(after.history) != len(before.history) else "",
                },
            )

    def _poll(self) -> bool:
        """Wait for the open operation, within this handler's patience; true when it is done."""
        row = self._loaded.job.live[-1]
        while True:
            pause = _POLL_S[min(self._polls, len(_POLL_S) - 1)] / self._plane.settings.time_scale
            if self._plane.clock.now() + timedelta(seconds=pause) > self._wait_until:
                return False
            self._plane.clock.sleep(pause)
            self._polls += 1
            if self._observer.operation_is_done(self._loaded.job, row):
                return True

    def _write_tombstones(self, job: Job, tombstones: Iterable[Tombstone], seen: Seen) -> Seen:
        """Write the plane's terminal markers; where a worker was faster, read what it wrote."""
        markers = dict(seen.markers)
        for tombstone in tombstones:
            row = next(row for row in job.resources if row.nonce == tombstone.nonce)
            markers[row.nonce] = self._write_tombstone(job, row, tombstone, markers.get(row.nonce))
        return replace(seen, markers=markers)

    def _write_tombstone(
        self, job: Job, row: Resource, tombstone: Tombstone, pair: MarkerPair | None
    ) -> MarkerPair:
        now = self._plane.clock.now()
        # Where there are many workers none of their markers ends the job: the plane speaks for the whole of it.
        name = marker_object(job.job_key, row.nonce, None if is_set(row) else 0, "terminal")
        body = tombstone.words or plane_marker(
            job, row, reason=tombstone.reason, detail=tombstone.detail, now=now
        )
        if self._plane.objects.create(job.plan.status_bucket, name, body):
            _LOG.info("tombstone", extra={"nonce": row.nonce, "reason": tombstone.reason})
        else:
            standing = self._observer.markers(job, row)
            if standing.terminal is not None:
                return standing
            # What stands there says nothing, and nothing else can ever stand there: the wish takes its place.
        return replace(pair or MarkerPair(), terminal=parse_marker(name, body, now), terminal_stored=True)

    def _after_save(self, before: Job, seen: Seen) -> None:
        """Tell the world of a new outcome: the compatibility marker, what was measured, the notification of a settled run."""
        after = self._loaded.job
        if before.outcome is None and after.outcome is not None:
            for nonce, pair in seen.markers.items():
                row = after.resources[-1]
                if pair.terminal is not None and nonce == row.nonce and not is_set(row):
                    self._copy_marker(after, pair.terminal.body)
            if after.summary is not None:
                # Only here: it brings the planner's sizing along, which most events never need.
                from runtender.engine.harvest import keep_measurements  # noqa: PLC0415 - cold start

                keep_measurements(self._plane, after)
        header = self._saver.header
        if header is not None and is_to_be_announced(header.run):
            self._announce(header)

    def _copy_marker(self, job: Job, body: object) -> None:
        """Nobody of ours reads this copy; older readers look there. Its failure changes nothing."""
        name = gce_status_object(job.plan.name)
        try:
            self._plane.objects.put(job.plan.status_bucket, name, json.dumps(body, sort_keys=True).encode())
        except RuntenderError as error:
            _LOG.warning("marker copy failed", extra={"error": str(error)})

    def _announce(self, header: Header) -> None:
        """Announce a settled run at once, if that can be; its last save does not go without."""
        self._saver.header = None
        try:
            announce(self._plane, header.run)
        except RuntenderError as error:
            _LOG.warning("notification failed", extra={"run_id": header.run.run_id, "error": str(error)})
            return
        self._saver.mark_notified(header)

    def _carry_out(self, effect: Effect, seen_at: datetime) -> None:
        row = next(row for row in self._loaded.job.resources if row.nonce == effect.nonce)
        match effect:
            case SendCreate():
                self._create(row)
            case SendDelete():
                self._delete(row, seen_at)
            case SendDeleteRemains():
                self._delete_remains(row)
            case KeepLogs():
                Crowd(self._plane).keep_logs(self._loaded.job, row)

    def _create(self, row: Resource) -> None:
        """Send a create, but only while it is surely ours to send: the API cannot fence it for us."""
        until = row.until if row.token == self._token else None
        if until is None or until - self._plane.clock.now() < self._plane.settings.timing.create_margin:
            _LOG.warning("create not sent, too late", extra={"nonce": row.nonce})
            return
        job = self._loaded.job
        runtime = self._plane.runtimes[job.runtime]
        answer = self._plane.apis[job.runtime].send(runtime.create(job, row, self._plane.settings))
        read = runtime.created(answer)
        facts = {"location": row.location, "status": answer.status, "read": str(read)[:300]}
        _LOG.info("create answered", extra=facts)
        ctx = self._context()
        change = partial(record_create, nonce=row.nonce, answer=read, ctx=ctx)
        self._loaded = self._saver.record(self._loaded, change)

    def _delete(self, row: Resource, seen_at: datetime) -> None:
        """Send a delete, but only soon after the look: it goes by name, and the next placement has the same one.

        A Job's names a UID, or its create's own label, and can be sent at any time.
        """
        timing = self._plane.settings.timing
        late = self._plane.clock.now() - seen_at > timing.hold - timing.create_margin
        if late and not is_set(row):
            _LOG.warning("delete not sent, too late", extra={"nonce": row.nonce})
            return
        job = self._loaded.job
        runtime = self._plane.runtimes[job.runtime]
        answer = self._plane.apis[job.runtime].send(runtime.delete(job, row, self._plane.settings))
        self._record_delete(row, runtime.deleted(answer))

    def _delete_remains(self, row: Resource) -> None:
        job = self._loaded.job
        runtime = self._plane.runtimes[job.runtime]
        for remain in runtime.remains(job, row, self._plane.settings):
            answer = self._plane.apis[job.runtime].send(remain.delete)
            self._record_delete(row, runtime.deleted(answer))

    def _record_delete(self, row: Resource, answer: DeleteAnswer) -> None:
        change = partial(record_delete, nonce=row.nonce, answer=answer, ctx=self._context())
        self._loaded = self._saver.record(self._loaded, change)
        cleanup = self._loaded.job.cleanup
        if answer.detail and cleanup.state is CleanupState.STUCK:
            facts = {"location": row.location, "reason": cleanup.reason, "tries": cleanup.tries}
            _LOG.warning("cleanup stuck", extra=facts)


def _there(seen: Seen) -> Mapping[str, Present]:
    return {nonce: sight for nonce, sight in seen.sights.items() if isinstance(sight, Present)}
