"""The standing cluster of a simulated world: its Kubernetes, the GKE API that knows it, and its pods, which are played.

Calls reach it by the names that the GKE API tells, as they would over the network. Each is watched before it takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.http import DROPPED, CoreHandler, Fault, HttpRequest, HttpResponse
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.documents import Document, condition_of, holds, labels_of, name_of, uid_of
from runtender.local.kubernetes.events import PodStarted
from runtender.local.kubernetes.indexes import parse_indexes
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.simulation.crew import Crew
from runtender.local.simulation.interference import Interference
from runtender.local.simulation.outside import Outside
from runtender.local.simulation.pods import ORDINARY_POD, Pod, PodBehaviour
from runtender.local.simulation.records import require
from runtender.local.simulation.statuses import NOT_THERE
from runtender.local.simulation.truth import Verdict
from runtender.local.simulation.weather import CREATE_JOB, DELETE_JOB, DELETE_JOBS, DELETE_PODS

NAME, LOCATION = "standing", "us-central1-a"
GKE = "http://container/v1"
JOBS = "Jobs"
"""The fleet list of a cluster, as rules name it."""
POOL = "default-pool"

_FLEET_PATH = "/apis/batch/v1/jobs"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSetup:
    """What the standing cluster is like: so many nodes at first, at most so many, and room for one worker on each.

    `pods` tells of each new pod what is in store for it, or is in store for all.
    """

    nodes: int = 4
    most: int | None = None
    minor: int = 34
    pods: Callable[[PodStarted], PodBehaviour] | PodBehaviour = ORDINARY_POD

    def behaviour(self, order: PodStarted) -> PodBehaviour:
        """Return what is in store for a pod."""
        return self.pods(order) if callable(self.pods) else self.pods


class StandingCluster:
    """One cluster. `hosts` are who answers at which name, kept up as names change."""

    def __init__(self, setup: ClusterSetup, outside: Outside) -> None:
        born = outside.clock.time - timedelta(days=90)
        pool = NodePool(name=POOL, nodes=setup.nodes, most=setup.most)
        self.hosts: dict[str, CoreHandler] = {}
        self.core = KubernetesCore(
            born=born,
            name=NAME,
            zone=LOCATION,
            minor=setup.minor,
            pools=(pool,),
            faults=self._kubernetes_fault,
        )
        self._outside = outside
        self._known = GkeCluster(
            name=NAME, location=LOCATION, born=born, minor=setup.minor, pools=(pool,), dns_endpoint=""
        )
        self._gke = ContainerCore(project=outside.settings.project, faults=self._gke_fault)
        self.people = Interference(self.core, lambda: self._now, outside.note)
        self._crew = Crew(outside.agenda, self, setup.behaviour)
        self._down_until = born
        self._moves = 0
        self._is_gone = False
        self.hosts["container"] = self._gke.handle
        self.move()

    # --- time

    def next_due(self) -> datetime | None:
        """Return when something will happen by itself."""
        return None if self._is_gone else self.core.next_due()

    def happen(self, now: datetime) -> None:
        """Carry out everything that is due at `now`."""
        # What a pod does on hearing of one event may bring about the next.
        while not self._is_gone and (events := self.core.advance(now)):
            for event in events:
                self._outside.note(f"pod {event.uid[:8]}: {type(event).__name__}")
                self._crew.tell(event, now)
        self._note_verdicts()

    # --- what pods reach (pods.PodSurroundings)

    def request(self, machine: str, method: str, url: str, body: bytes = b"") -> HttpResponse:
        return self._outside.request(machine, method, url, body)

    def epoch(self) -> int:
        return self._outside.epoch()

    def pod_started(self, uid: str) -> None:
        self.core.pod_started(uid, self._now)

    def pod_works(self, pod: Pod) -> None:
        if pod.is_worker:
            self._outside.onlooker.begins(pod.nonce)

    def pod_has_worked(self, pod: Pod) -> None:
        self._outside.onlooker.worked[pod.nonce].add(pod.index)

    def pod_exited(self, pod: Pod, exit_code: int, *, oom: bool) -> None:
        self._outside.note(f"pod {pod.order.uid[:8]} of index {pod.index}: exits {exit_code}")
        self.core.pod_exited(pod.order.uid, exit_code, self._now, oom=oom)

    # --- what the onlooker sees

    def standing(self, nonce: str) -> list[str]:
        """Tell of the Jobs and pods with this nonce."""
        return [
            f"{document['kind']} {name_of(document)}"
            for resource in ("jobs", "pods")
            for document in self._documents(resource)
            if labels_of(document).get("sf-nonce") == nonce
        ]

    def workers(self) -> Iterable[tuple[str, str, bool]]:
        """Tell of the workers that are at it; nothing holds those back any more."""
        return [(pod.key, pod.nonce, False) for pod in self._crew.at_work() if pod.key]

    def leftovers(self) -> Mapping[str, tuple[str, ...]]:
        """Return what is there of ours."""
        found = {resource: self._documents(resource) for resource in ("jobs", "pods")}
        return {
            resource: tuple(name_of(one) for one in documents if self._is_ours(one))
            for resource, documents in found.items()
        }

    def check_strangers(self) -> None:
        """Check that the Jobs of others are there."""
        there = {uid_of(job) for job in self.core.documents("jobs")}
        require(self.people.strangers <= there, "I6", "a stranger's Job is gone")

    def running_pods(self) -> list[Document]:
        """Return the pods that are at work, of whomever."""
        return [pod for pod in self._documents("pods") if pod["status"].get("phase") == "Running"]

    def jobs(self) -> list[Document]:
        """Return the Jobs of ours that are there."""
        return [job for job in self._documents("jobs") if self._is_ours(job)]

    def has_job(self, uid: str) -> bool:
        """True while the Job of this UID is there."""
        return any(uid_of(job) == uid for job in self._documents("jobs"))

    # --- what a test or a story does to it

    def go_down(self, span: timedelta) -> None:
        """Let the cluster's API not answer for a while; what runs there runs on."""
        self._outside.note(f"the cluster's API is down for {span}")
        self._down_until = self._now + span

    def move(self, *, page: bool = False) -> None:
        """Give the cluster's API another name. At the old one nobody answers, or with a `page` somebody else."""
        if self._moves:
            self.hosts[self._host] = _somebody_else if page else _nobody
        self._moves += 1
        self.hosts[self._host] = self._kubernetes
        self._gke.put(replace(self._known, dns_endpoint=self._host))

    def vanish(self) -> None:
        """Let somebody delete the cluster, with all that is on it."""
        self._outside.note("somebody deletes the cluster")
        self._gke.remove(LOCATION, NAME)
        self.hosts[self._host] = _nobody
        self._crew.end_all()
        self._is_gone = True

    def calm(self) -> None:
        """End all trouble."""
        self._down_until = self._now
        self.people.lift_limit()

    # --- calls

    @property
    def _host(self) -> str:
        return f"kubernetes-{self._moves}"

    @property
    def _now(self) -> datetime:
        return self._outside.clock.time

    def _kubernetes(self, request: HttpRequest, now: datetime) -> HttpResponse:
        if now < self._down_until:
            return DROPPED
        size = self._outside.weather.page_size()
        if size is not None and "limit" in request.query:
            request = replace(request, query={**request.query, "limit": str(size)})
        # What somebody did just now may have ended a Job.
        self._note_verdicts()
        answer = self.core.handle(request, now)
        if request.path == _FLEET_PATH:
            self._note_fleet(answer)
        if request.method != "GET":
            self._outside.onlooker.check_workers()
        return answer

    def _note_fleet(self, answer: HttpResponse) -> None:
        """A list is whole when its last page has come."""
        partial = self._outside.partial_fleets
        if answer.status != 200 or answer.json()["metadata"].get("continue"):
            partial.add(JOBS)
        else:
            partial.discard(JOBS)
            self._outside.weather.saw_jobs(answer)

    def _gke_fault(self, method: str, request: HttpRequest) -> Fault | None:
        return self._outside.fault(method, request, by_worker=False)

    def _kubernetes_fault(self, method: str, request: HttpRequest) -> Fault | None:
        if method == CREATE_JOB:
            self._outside.onlooker.creating(request.json()["metadata"].get("labels", {}))
        elif method == DELETE_JOB:
            self._watch_delete(request)
        elif method in {DELETE_JOBS, DELETE_PODS}:
            self._watch_collection("jobs" if method == DELETE_JOBS else "pods", request)
        return self._outside.fault(method, request, by_worker=False)

    def _watch_delete(self, request: HttpRequest) -> None:
        body = request.json()
        uid = body.get("preconditions", {}).get("uid")
        name = request.segments[-1]
        require(bool(uid), "I6", f"Job {name} is deleted by its name alone")
        require(body.get("propagationPolicy") == "Background", "I2", f"Job {name} goes, and its pods stay")
        for job in self.core.documents("jobs"):
            if uid_of(job) == uid:
                self._outside.onlooker.deleting(name_of(job), labels_of(job), JOBS)

    def _watch_collection(self, resource: str, request: HttpRequest) -> None:
        selector = dict(pair.split("=") for pair in request.query.get("labelSelector", "").split(",") if pair)
        narrow = selector.keys() == {"sf-nonce", "sf-plane"}
        require(narrow, "I6", f"{resource} are deleted by {selector or 'no'} labels")
        for document in self.core.documents(resource):
            labels = labels_of(document)
            if selector.items() <= labels.items():
                if resource == "jobs":
                    self._outside.onlooker.deleting(name_of(document), labels, JOBS)
                else:
                    self._outside.onlooker.deleting_remains("pod", labels)

    def _documents(self, resource: str) -> tuple[Document, ...]:
        return () if self._is_gone else self.core.documents(resource)

    def _is_ours(self, document: Document) -> bool:
        return labels_of(document).get("sf-plane") == self._outside.settings.plane_id

    def _note_verdicts(self) -> None:
        """Take note of each Job of ours when it has come to its end."""
        verdicts = self._outside.onlooker.verdicts
        for job in self.jobs():
            nonce = labels_of(job)["sf-nonce"]
            if nonce not in verdicts and _has_ended(job):
                verdicts[nonce] = self._verdict(job, nonce)

    def _verdict(self, job: Document, nonce: str) -> Verdict:
        failed = condition_of(job, "Failed")
        pods = [pod for pod in self.core.documents("pods") if labels_of(pod).get("sf-nonce") == nonce]
        return Verdict(
            failed_because=failed["reason"] if failed else "",
            done=frozenset(parse_indexes(job["status"].get("completedIndexes", ""))),
            overdue=any(pod["status"].get("reason") == "DeadlineExceeded" for pod in pods),
        )


def _nobody(_request: HttpRequest, _now: datetime) -> HttpResponse:
    return DROPPED


def _somebody_else(_request: HttpRequest, _now: datetime) -> HttpResponse:
    return NOT_THERE


def _has_ended(job: Document) -> bool:
    """True for a Job that has failed or has all it wants, also while it waits for the last of its pods to go."""
    done = job.get("status", {}).get("succeeded", 0) >= job["spec"]["completions"]
    return done or holds(job, "Complete") or holds(job, "Failed")
