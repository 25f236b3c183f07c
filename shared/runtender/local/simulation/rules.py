"""The rules that hold in every simulated world after every step, and the history of each job.

The onlooker sees what no part of the plane sees at once: the documents, the machines, the pods, the objects and each request
on its way. It raises `BrokenRule` at the first thing that must not be; rules are named as in the design (I1 to I10).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from runtender.ids import parse_marker_object
from runtender.local.simulation import records
from runtender.local.simulation.records import BrokenRule, require
from runtender.local.simulation.truth import Right, Verdict, Word, right_by_verdict, right_by_word, sum_of
from runtender.model import Admission, Job, Outcome, Phase, Reason, Resource, ResourceState, Run
from runtender.settings import Settings
from runtender.wire.markers import parse_marker

_CLUSTERS = "gke"


class View(Protocol):
    """What the onlooker sees of a world."""

    settings: Settings
    partial_fleets: set[str]

    def time(self) -> datetime: ...

    def job(self, job_key: str) -> Job | None: ...

    def run(self, run_id: str) -> Run | None: ...

    def standing(self, nonce: str) -> list[str]:
        """Tell of everything that is there with this nonce."""

    def has_job(self, uid: str) -> bool:
        """True while the Kubernetes Job of this UID is there."""

    def workers(self) -> Iterable[tuple[str, str, bool]]:
        """Tell of all that works or may yet: the job's key, the nonce, and whether a word could still hold it back."""

    def summaries(self, job: Job, nonce: str) -> Mapping[int, bytes]: ...

    def creates_granted(self) -> int: ...


@dataclass(kw_only=True, slots=True)
class Onlooker:
    """Watches one world. `jobs` holds each job as last saved, `words` the first terminal object of each nonce.

    `verdicts` are how Jobs ended by their own status, `worked` the indexes whose work came to a good end; both by nonce.
    """

    view: View
    jobs: dict[str, Job] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    words: dict[str, Word] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    worked: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    rights: dict[str, Right] = field(default_factory=dict)
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
            run = self.view.run(run_id)
            if run is not None:
                self.runs.add(run_id)
                records.check_header(run, self.jobs.values())

    def _saved(self, job: Job) -> None:
        before = self.jobs.get(job.job_key)
        self.jobs[job.job_key] = job
        self.nonces.update({row.nonce: job.job_key for row in job.resources})
        self.checks += 1
        if before is None:
            records.check_begun(job)
            records.check_wake(job)
            return
        records.check_change(before, job)
        records.check_wake(job)
        if before.outcome is None and job.outcome is not None:
            self.check_truth(job)
        for row in job.resources:
            self._check_row(before, job, row)
        if job.admission is Admission.LIVE and before.admission is not Admission.LIVE:
            records.check_limits(job, self.jobs.values(), self.view.settings)

    def check_truth(self, job: Job) -> None:
        """Compare a job's outcome with what objects and Jobs say."""
        # Nobody can speak for a try whose create was refused; what lies there is not its word.
        tries = [row.nonce for row in job.resources if not row.refused]
        said = [nonce for nonce in tries if (word := self.words.get(nonce)) and word.settles]
        ended = [nonce for nonce in tries if nonce in self.verdicts and not self._has_word(nonce)]
        if (said or ended) and job.job_key not in self.rights:
            # What is stored or seen after the end changes nothing.
            self.rights[job.job_key] = self._right(job, *(said or ended))
        if job.job_key in self.rights:
            right, words = self.rights[job.job_key], f"{job.job_key} ended {job.outcome} ({job.reason})"
            require(
                job.outcome in right, "truth", f"{words}, right is {' or '.join(sorted(right)) or 'nothing'}"
            )
        # Whoever may still boot must find a word; an object that cannot be read forbids as well as any.
        silent = [nonce for nonce in tries if nonce not in self.words and nonce not in ended]
        require(
            bool(said) or not silent, "tombstone", f"{job.job_key} ended {job.reason}, and {silent} may start"
        )

    def _has_word(self, nonce: str) -> bool:
        word = self.words.get(nonce)
        return word is not None and word.marker is not None

    def _right(self, job: Job, *nonces: str) -> Right:
        require(len(nonces) == 1, "truth", f"{job.job_key}: {len(nonces)} tries decide")
        (nonce,) = nonces
        cells = sum_of(self.view.summaries(job, nonce), job.plan.worker_count)
        word = self.words.get(nonce)
        if word is not None and word.marker is not None:
            return right_by_word(job, word, cells)
        return right_by_verdict(job, self.verdicts[nonce], self.worked[nonce], cells)

    def _check_row(self, before: Job, job: Job, row: Resource) -> None:
        old = next((one for one in before.resources if one.nonce == row.nonce), None)
        if old is None:
            others = [one.nonce for one in job.live if one.nonce != row.nonce]
            require(not others, "I3", f"{job.job_key}: {row.nonce} is placed beside {others}")
            records.check_older_attempts(job, self.jobs.values())
            return
        if row.state is ResourceState.GONE and old.state is not ResourceState.GONE:
            self._check_gone(job, row)

    def _check_gone(self, job: Job, row: Resource) -> None:
        there = self.view.standing(row.nonce)
        require(not there, "I8", f"{job.job_key}: {row.nonce} is called gone, and there is {there}")
        sent = self.sent.get(row.nonce)
        if sent is None or row.refused or row.created_at is not None:
            return
        waited = self.view.time() - sent
        enough = waited >= self.view.settings.timing.create_grace
        words = f"{job.job_key}: {row.nonce} is called gone {waited} after its create was sent"
        require(enough, "I8", words)

    # --- requests on their way

    def creating(self, labels: Mapping[str, str]) -> None:
        """Look at a create that is about to arrive."""
        nonce = labels.get("sf-nonce", "")
        job = self.jobs.get(self.nonces.get(nonce, ""))
        require(job is not None, "I1", f"a create of {nonce} is sent, and no row is saved")
        self.sent[nonce] = self.view.time()
        self.creates.append(self.view.time())
        granted = self.view.creates_granted()
        words = f"{len(self.creates)} creates are sent and {granted} were granted"
        require(len(self.creates) <= granted, "budget", words)

    def deleting(self, name: str, labels: Mapping[str, str], fleet: str) -> None:
        """Look at a delete by the plane that is about to arrive at a machine or a Job; `fleet` is the list it is on."""
        ours = labels.get("sf-plane") == self.view.settings.plane_id
        job = next((one for one in self.jobs.values() if one.key == labels.get("sf-key")), None)
        require(ours and job is not None, "I6", f"{name} with {dict(labels)} is not ours to delete")
        assert job is not None  # noqa: S101 - just required
        require(job.plan.name == name, "I6", f"{name} has another job's label")
        row = next((one for one in job.live if one.nonce == labels.get("sf-nonce")), None)
        if row is None:
            whole = fleet not in self.view.partial_fleets
            require(whole, "I9", f"{name} is swept on the strength of a partial list")
        elif job.phase is not Phase.DONE:
            wanted = row.state is ResourceState.DELETING or job.outcome is not None
            require(wanted, "I6", f"{name} is deleted while its row is {row.state}")

    def deleting_remains(self, what: str, labels: Mapping[str, str]) -> None:
        """Look at a delete by the plane that is about to arrive at what a row covers: a disk, a pod."""
        nonce = labels.get("sf-nonce", "")
        job = self.jobs.get(self.nonces.get(nonce, ""))
        row = next((one for one in job.resources if one.nonce == nonce), None) if job else None
        doomed = row is None or row.state in {ResourceState.DELETING, ResourceState.GONE}
        require(job is not None and doomed, "I6", f"the {what} of {nonce or 'nobody'} is deleted")

    # --- objects and workers

    def stored(self, name: str, body: Callable[[], bytes]) -> None:
        """Take note of an object in the status bucket; the first terminal one of a try that can be read counts."""
        where = parse_marker_object(name)
        if where is None or where.stage != "terminal":
            return
        job = self.jobs.get(where.job_key)
        # Of many workers none can end the whole: only the plane speaks for that.
        speaker = None if job is not None and job.runtime == _CLUSTERS else 0
        standing = self.words.get(where.nonce)
        if where.index == speaker and (standing is None or standing.marker is None):
            now = self.view.time()
            word = Word(stored_at=now, marker=parse_marker(name, body(), now))
            self.words[where.nonce] = word
            if job is not None and word.marker is not None and word.marker.reason is Reason.JOB_DELETED:
                self._check_deleted(job, where.nonce)

    def _check_deleted(self, job: Job, nonce: str) -> None:
        """Check that a Job which is said to have been deleted by somebody is not there."""
        (row,) = (row for row in job.resources if row.nonce == nonce)
        there = self.view.has_job(row.target_id or "")
        require(not there, "truth", f"{job.job_key}: its Job is called deleted, and is there")

    def begins(self, nonce: str) -> None:
        """Take note of a worker that begins, having looked whether it may."""
        job = self.jobs.get(self.nonces.get(nonce, ""))
        at_rest = job is not None and job.phase is Phase.DONE
        require(not at_rest, "tombstone", f"a worker of {nonce} begins, and its job is done")

    def check_workers(self) -> None:
        """Check that no job has two sets of workers that could run."""
        live: defaultdict[str, set[str]] = defaultdict(set)
        for key, nonce, heeds in self.view.workers():
            if not heeds or nonce not in self.words:
                live[key].add(nonce)
        for key, nonces in live.items():
            require(len(nonces) == 1, "I3", f"job {key} has live workers {sorted(nonces)}")

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
            words = f"{run_id} ended {run.outcome if run else ''} and nobody was told"
            require(announced, "announced", words)
        left = {kind: names for kind, names in leftovers.items() if names}
        require(not left, "I2", f"left over: {left}")

    def _check_reason(self, job: Job) -> None:
        spoke = any(row.nonce in self.words or row.nonce in self.verdicts for row in job.resources)
        unproven = job.outcome in {Outcome.SUCCEEDED, Outcome.PARTIAL} and not spoke
        require(not unproven, "truth", f"{job.job_key} succeeded, and no worker said so")
        if job.outcome is Outcome.NO_CAPACITY:
            known = {
                Reason.CAPACITY_TIMEOUT,
                Reason.CAPACITY_EXHAUSTED,
                Reason.QUOTA_BLOCKED,
                Reason.UNSCHEDULABLE,
            }
            require(job.reason in known, "truth", f"{job.job_key}: {job.reason}")


__all__ = ["BrokenRule", "Onlooker", "View", "require"]
