"""The rules that hold in every simulated world after every step, and the history of each job.

The onlooker sees what no part of the plane sees at once: the documents, the machines, the objects and each request on its
way. It raises `BrokenRule` at the first thing that must not be; rules are named as in the design (I1 to I10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from runtender.decide.header import family_entry, roll_up, status_word
from runtender.ids import parse_marker_object
from runtender.local.compute.instances import Instance, Status
from runtender.local.simulation.truth import Word, outcome_of
from runtender.model import Admission, Job, Outcome, Phase, Reason, Resource, ResourceState, Run
from runtender.settings import Settings
from runtender.wire.markers import parse_marker

_COULD_RUN = {Status.PROVISIONING, Status.STAGING, Status.RUNNING}


class BrokenRule(AssertionError):
    """Something happened that must not; the message names the rule."""


class View(Protocol):
    """What the onlooker sees of a world."""

    settings: Settings

    def time(self) -> datetime: ...

    def machines(self) -> tuple[Instance, ...]: ...

    def job(self, job_key: str) -> Job | None: ...

    def run(self, run_id: str) -> Run | None: ...

    def summary(self, job: Job, nonce: str) -> bytes | None: ...

    def creates_granted(self) -> int: ...


def require(holds: bool, rule: str, words: str) -> None:
    """Raise `BrokenRule` unless the rule holds."""
    if not holds:
        raise BrokenRule(f"{rule}: {words}")


@dataclass(kw_only=True, slots=True)
class Onlooker:
    """Watches one world. `jobs` holds each job as last saved, `words` the first terminal object of each nonce."""

    view: View
    jobs: dict[str, Job] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    words: dict[str, Word] = field(default_factory=dict)
    summaries: dict[str, bytes | None] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)
    sent: dict[str, datetime] = field(default_factory=dict)
    creates: list[datetime] = field(default_factory=list)
    checks: int = 0

    # --- documents

    def committed(self, paths: Iterable[str]) -> None:
        """Look at every document that a commit has written."""
        runs: set[str] = set()
        for path in paths:
            collection, _, name = path.partition("/")
            if collection == "jobs" and "/" not in name:
                job = self.view.job(name)
                if job is not None:
                    self._saved(job)
                    runs.add(job.run_id)
            elif collection == "runs":
                runs.add(name)
        for run_id in runs:
            self._check_header(run_id)

    def _saved(self, job: Job) -> None:
        before = self.jobs.get(job.job_key)
        self.jobs[job.job_key] = job
        self.nonces.update({row.nonce: job.job_key for row in job.resources})
        self.checks += 1
        require(
            (job.wake_at is None) == (job.phase is Phase.DONE),
            "wake",
            f"{job.job_key} has wake {job.wake_at}",
        )
        if before is None:
            require(len(job.history) == 1, "I5", f"{job.job_key} begins with {len(job.history)} rows")
            return
        require(job.version == before.version + 1, "history", f"{job.job_key} jumps to version {job.version}")
        self._check_history(before, job)
        self._check_outcome(before, job)
        for row in job.resources:
            self._check_row(before, job, row)
        if job.admission is Admission.LIVE and before.admission is not Admission.LIVE:
            self._check_limits(job)

    def _check_limits(self, job: Job) -> None:
        live = [one.job_key for one in self.jobs.values() if one.admission is Admission.LIVE]
        for limit in self.view.settings.live_limits:
            fits = limit.label is not None or limit.jobs is None or len(live) <= limit.jobs
            require(fits, "limits", f"{job.job_key} is let in beside {live}")

    def _check_history(self, before: Job, job: Job) -> None:
        new = job.history[len(before.history) :]
        require(
            job.history[: len(before.history)] == before.history, "I5", f"{job.job_key} rewrites its history"
        )
        moved = (before.phase, before.outcome) != (job.phase, job.outcome)
        require(
            moved == bool(new), "I5", f"{job.job_key}: {before.phase} -> {job.phase} with {len(new)} new rows"
        )
        require(all(row.cause for row in new), "I5", f"{job.job_key} moves without a cause")
        if new:
            last = (new[-1].phase, new[-1].outcome)
            require(last == (job.phase, job.outcome), "I5", f"{job.job_key}: last row says {last}")

    def _check_outcome(self, before: Job, job: Job) -> None:
        if before.outcome is not None:
            same = (before.outcome, before.reason) == (job.outcome, job.reason)
            require(same, "I4", f"{job.job_key}: {before.outcome} became {job.outcome} ({job.reason})")
            require(
                job.phase in {Phase.STOPPING, Phase.DONE}, "I4", f"{job.job_key} goes back to {job.phase}"
            )
        elif job.outcome is not None:
            self.check_truth(job)

    def check_truth(self, job: Job) -> None:
        """Compare a job's outcome with what the objects say."""
        # Nobody can speak for a try whose create was refused; what lies there is not its word.
        tries = [row.nonce for row in job.resources if not row.refused]
        said = [(nonce, word) for nonce in tries if (word := self.words.get(nonce)) and word.settles]
        require(len(said) <= 1, "truth", f"{job.job_key}: {len(said)} tries have settling words")
        if said:
            nonce, word = said[0]
            # A summary that lands after the end changes nothing.
            summary = self.summaries.setdefault(nonce, self.view.summary(job, nonce))
            right = outcome_of(job, word, summary)
            require(
                job.outcome is right,
                "truth",
                f"{job.job_key} ended {job.outcome} ({job.reason}), right is {right}",
            )
            return
        # Whoever may still boot must find a word; an object that cannot be read forbids as well as any.
        silent = [nonce for nonce in tries if nonce not in self.words]
        require(not silent, "tombstone", f"{job.job_key} ended {job.reason}, and {silent} may start")

    def _check_row(self, before: Job, job: Job, row: Resource) -> None:
        old = next((one for one in before.resources if one.nonce == row.nonce), None)
        if old is None:
            others = [one.nonce for one in job.live if one.nonce != row.nonce]
            require(not others, "I3", f"{job.job_key}: {row.nonce} is placed beside {others}")
            self._check_older_attempts(job)
            return
        if row.state is ResourceState.GONE and old.state is not ResourceState.GONE:
            self._check_gone(job, row)

    def _check_older_attempts(self, job: Job) -> None:
        older = [
            one.job_key
            for one in self.jobs.values()
            if (one.run_id, one.family) == (job.run_id, job.family) and one.attempt < job.attempt
            if one.phase is not Phase.DONE
        ]
        require(not older, "I3", f"{job.job_key} is placed before {older} is done")

    def _check_gone(self, job: Job, row: Resource) -> None:
        there = [one for one in self.view.machines() if one.order.labels.get("sf-nonce") == row.nonce]
        require(
            not there,
            "I8",
            f"{job.job_key}: {row.nonce} is called gone and is {[one.status for one in there]}",
        )
        sent = self.sent.get(row.nonce)
        if sent is None or row.refused or row.created_at is not None:
            return
        waited = self.view.time() - sent
        grace = self.view.settings.timing.create_grace
        require(
            waited >= grace,
            "I8",
            f"{job.job_key}: {row.nonce} is called gone {waited} after its create was sent",
        )

    def _check_header(self, run_id: str) -> None:
        run = self.view.run(run_id)
        if run is None:
            return
        self.runs.add(run_id)
        latest: dict[str, Job] = {}
        for job in self.jobs.values():
            standing = latest.get(job.family)
            if job.run_id == run_id and (standing is None or standing.attempt < job.attempt):
                latest[job.family] = job
        entries = {family: family_entry(job) for family, job in latest.items()}
        require(
            dict(run.families) == entries,
            "I10",
            f"header of {run_id} says {dict(run.families)}, not {entries}",
        )
        right = (roll_up(entries), status_word(entries))
        require(
            (run.outcome, run.status) == right,
            "I10",
            f"{run_id} says {run.outcome} {run.status}, not {right}",
        )

    # --- requests on their way

    def creating(self, labels: Mapping[str, str]) -> None:
        """Look at a create that is about to arrive."""
        nonce = labels.get("sf-nonce", "")
        job = self.jobs.get(self.nonces.get(nonce, ""))
        require(job is not None, "I1", f"a create of {nonce} is sent, and no row is saved")
        self.sent[nonce] = self.view.time()
        self.creates.append(self.view.time())
        granted = self.view.creates_granted()
        require(
            len(self.creates) <= granted,
            "budget",
            f"{len(self.creates)} creates are sent and {granted} were granted",
        )

    def deleting(self, machine: Instance | None, *, fleet_is_whole: bool) -> None:
        """Look at a delete by the plane that is about to arrive at a machine.

        `fleet_is_whole`: the sender read a fleet list to its end, or none.
        """
        if machine is None:
            return
        labels = machine.order.labels
        ours = labels.get("sf-plane") == self.view.settings.plane_id
        job = next((one for one in self.jobs.values() if one.key == labels.get("sf-key")), None)
        require(
            ours and job is not None,
            "I6",
            f"{machine.order.name} in {machine.order.zone} is not ours to delete",
        )
        assert job is not None  # noqa: S101 - just required
        require(job.plan.name == machine.order.name, "I6", f"{machine.order.name} has another job's label")
        row = next((one for one in job.live if one.nonce == labels.get("sf-nonce")), None)
        if row is None:
            require(fleet_is_whole, "I9", f"{machine.order.name} is swept on the strength of a partial list")
        elif job.phase is not Phase.DONE:
            wanted = row.state is ResourceState.DELETING or job.outcome is not None
            require(wanted, "I6", f"{machine.order.name} is deleted while its row is {row.state}")

    def deleting_disk(self, labels: Mapping[str, str]) -> None:
        """Look at a delete by the plane that is about to arrive at a disk."""
        if not labels:
            # It went just before.
            return
        nonce = labels.get("sf-nonce", "")
        job = self.jobs.get(self.nonces.get(nonce, ""))
        row = next((one for one in job.resources if one.nonce == nonce), None) if job else None
        doomed = row is None or row.state in {ResourceState.DELETING, ResourceState.GONE}
        require(job is not None and doomed, "I6", f"the disk of {nonce or 'nobody'} is deleted")

    # --- objects and machines

    def stored(self, name: str, body: Callable[[], bytes]) -> None:
        """Take note of an object in the status bucket; the first terminal one of a try that can be read counts."""
        where = parse_marker_object(name)
        if where is None or where.stage != "terminal" or where.index != 0:
            return
        standing = self.words.get(where.nonce)
        if standing is None or standing.marker is None:
            now = self.view.time()
            self.words[where.nonce] = Word(stored_at=now, marker=parse_marker(name, body(), now))

    def check_machines(self) -> None:
        """Check that no job has two workers that could run."""
        live: dict[str, list[str]] = {}
        for machine in self.view.machines():
            labels = machine.order.labels
            nonce = labels.get("sf-nonce", "")
            if labels.get("sf-plane") != self.view.settings.plane_id or machine.status not in _COULD_RUN:
                continue
            if nonce not in self.words:
                live.setdefault(labels["sf-key"], []).append(nonce)
        for key, nonces in live.items():
            require(len(nonces) == 1, "I3", f"job {key} has live workers {nonces}")

    # --- the end

    def check_rest(self, leftovers: Mapping[str, tuple[str, ...]]) -> None:
        """Check a world that has come to rest: every job is done, rightly, and nothing is left."""
        for job in self.jobs.values():
            require(job.phase is Phase.DONE, "liveness", f"{job.job_key} is {job.phase}, reason {job.reason}")
            self.check_truth(job)
            self._check_reason(job)
        for run_id in self.runs:
            run = self.view.run(run_id)
            announced = run is None or run.outcome is None or run.notified_at is not None
            require(
                announced, "announced", f"{run_id} ended {run.outcome if run else ''} and nobody was told"
            )
        left = {kind: names for kind, names in leftovers.items() if names}
        require(not left, "I2", f"left over: {left}")

    def _check_reason(self, job: Job) -> None:
        words = any(self.words.get(row.nonce) for row in job.resources)
        unproven = job.outcome in {Outcome.SUCCEEDED, Outcome.PARTIAL} and not words
        require(not unproven, "truth", f"{job.job_key} succeeded, and no worker said so")
        if job.outcome is Outcome.NO_CAPACITY:
            known = {Reason.CAPACITY_TIMEOUT, Reason.CAPACITY_EXHAUSTED, Reason.QUOTA_BLOCKED}
            require(job.reason in known, "truth", f"{job.job_key}: {job.reason}")
