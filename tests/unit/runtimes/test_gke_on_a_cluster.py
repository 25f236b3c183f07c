"""The GKE runtime's calls, carried to a simulated cluster and read back: what is asked for is what happens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import PodStarted
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.kubernetes.schema import installed_schemas
from runtender.model import Job, Resource
from runtender.observed import (
    Absent,
    Accepted,
    DeleteAnswer,
    LiveState,
    NameTaken,
    PodsSeen,
    Present,
    TroubleKind,
    WorkersVerdict,
)
from runtender.ports import ApiAnswer, ApiRequest
from runtender.runtimes.cluster import read_version, version_of
from runtender.runtimes.gke_job import GkeJob
from runtender.settings import Settings

GKE = GkeJob()
BORN = datetime(2026, 2, 1, tzinfo=UTC)
NAMESPACE = "default"

Ending = Callable[[PodStarted], int | None]


@dataclass
class Standing:
    """A simulated cluster with a clock that the test moves; its pods start at once and end as `ending` says."""

    core: KubernetesCore
    now: datetime = datetime(2026, 5, 4, 12, tzinfo=UTC)
    ending: Ending = lambda _started: None
    said: bytes = b""
    started: list[PodStarted] = field(default_factory=list)

    def send(self, request: ApiRequest) -> ApiAnswer:
        body = b"" if request.body is None else json.dumps(request.body).encode()
        headers = {"Content-Type": "application/json"} if body else {}
        url = f"{request.path}?{urlencode(request.query)}"
        answer = self.core.handle(HttpRequest.to_url(request.verb, url, headers=headers, body=body), self.now)
        parsed = (
            answer.json() if answer.headers.get("Content-Type", "").startswith("application/json") else {}
        )
        return ApiAnswer(status=answer.status, body=parsed, text=answer.body.decode())

    def later(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += timedelta(seconds=1)
            for event in self.core.advance(self.now):
                if isinstance(event, PodStarted):
                    self._run(event)

    def _run(self, event: PodStarted) -> None:
        self.started.append(event)
        self.core.pod_started(event.uid, self.now)
        code = self.ending(event)
        if code is not None:
            self.core.pod_log(event.uid, self.said, self.now)
            self.core.pod_exited(event.uid, code, self.now)


def index_of(started: PodStarted) -> int:
    return int(started.env["JOB_COMPLETION_INDEX"])


@dataclass(frozen=True)
class Try:
    """One try of a job, and all that the runtime does about it on one cluster."""

    at: Standing
    job: Job
    row: Resource
    settings: Settings

    def create(self) -> object:
        return GKE.created(self.at.send(GKE.create(self.job, self.row, self.settings)))

    def made(self) -> Try:
        accepted = self.create()
        assert isinstance(accepted, Accepted)
        assert accepted.target_id
        return replace(self, row=replace(self.row, target_id=accepted.target_id))

    def sight(self) -> Present | Absent | None:
        return GKE.looked(self.at.send(GKE.look(self.job, self.row, self.settings)))

    def present(self) -> Present:
        sight = self.sight()
        assert isinstance(sight, Present)
        return sight

    def verdict(self) -> WorkersVerdict:
        workers = self.present().workers
        assert workers is not None
        return workers.verdict

    def delete(self) -> DeleteAnswer:
        return GKE.deleted(self.at.send(GKE.delete(self.job, self.row, self.settings)))

    def remains(self) -> bool:
        (pods,) = GKE.remains(self.job, self.row, self.settings)
        answer = self.at.send(pods.look)
        assert answer.ok
        return bool(answer.body.get("items"))

    def pods(self) -> PodsSeen:
        events = self.at.send(GKE.events(self.job, self.row, self.settings))
        page = self.at.send(GKE.pods(self.job, self.row, self.settings))
        seen = GKE.podded(self.row, [page], events)
        assert seen is not None
        assert events.ok
        return seen


@pytest.fixture
def place() -> Callable[..., Standing]:
    def build(minor: int = 34, *, nodes: int = 4) -> Standing:
        schemas = installed_schemas(minor)
        pools = (NodePool(nodes=nodes),)
        return Standing(core=KubernetesCore(born=BORN, minor=minor, pools=pools, schemas=schemas))

    return build


@pytest.fixture
def a_try(standing):
    def build(at: Standing, cluster: Mapping[str, object] | None = None, **asked: object) -> Try:
        bearing = standing(cluster or {}, gke_namespace=NAMESPACE, **asked)
        return Try(at=at, job=bearing.job, row=bearing.row, settings=bearing.settings)

    return build


def test_a_server_of_each_version_takes_its_job(place, a_try):
    for minor in (31, 33, 34):
        at = place(minor)
        tried = a_try(at, {"server_minor": minor}).made()
        assert read_version(at.send(version_of("projects/p/locations/l/clusters/c"))) == minor
        assert tried.verdict() is WorkersVerdict.RUNNING


def test_a_job_that_was_made_is_ours_and_runs(place, a_try):
    at = place()
    tried = a_try(at, workers=3).made()
    at.later(30)
    sight = tried.present()
    assert (sight.state, sight.uid, sight.nonce, sight.plane, sight.key) == (
        LiveState.RUNNING,
        tried.row.target_id,
        tried.row.nonce,
        "main",
        tried.job.key,
    )
    assert sight.workers is not None
    assert (sight.workers.completions, sight.workers.active, sight.workers.ready) == (3, 3, 3)
    seen = tried.pods()
    assert sorted(pod.index for pod in seen.pods) == [0, 1, 2]
    assert seen.scheduled_at is not None
    assert seen.started_at is not None
    assert seen.started_at >= seen.scheduled_at


@pytest.mark.parametrize("born", [pytest.param(BORN, id="acceptance-Z19")])
def test_a_jobs_times_are_its_own_and_not_the_clusters(place, a_try, born):
    at = place()
    at.ending = lambda _started: 0
    tried = a_try(at).made()
    made_at = at.now
    at.later(60)
    sight = tried.present()
    assert sight.workers is not None
    assert sight.workers.verdict is WorkersVerdict.SUCCEEDED
    assert (sight.created_at, sight.workers.started_at) == (made_at, made_at)
    assert sight.workers.completed_at is not None
    assert sight.workers.completed_at > made_at > born


def test_what_a_worker_is_told_reaches_its_process(place, a_try):
    at = place()
    tried = a_try(at).made()
    at.later(30)
    one = at.started[0]
    assert (one.env["SF_NONCE"], one.env["SF_POD_UID"]) == (tried.row.nonce, one.uid)
    assert (one.env["JOB_COMPLETION_TOTAL"], {index_of(each) for each in at.started}) == ("2", {0, 1})
    assert one.volumes == {"/dev/shm": "emptyDir"}


def test_an_index_that_fails_is_named_and_the_others_go_on(place, a_try):
    at = place()
    at.ending = lambda started: 7 if index_of(started) == 1 else 0
    at.said = b"cannot fit series 12\n"
    tried = a_try(at, workers=4).made()
    at.later(60)
    workers = tried.present().workers
    assert workers is not None
    assert (workers.verdict, workers.failed_indexes, workers.failed_reason) == (
        WorkersVerdict.FAILED,
        "1",
        "FailedIndexes",
    )
    assert (workers.completed_indexes, workers.completed_at is not None) == ("0,2,3", True)
    (failed,) = (pod for pod in tried.pods().pods if pod.exit_code)
    assert (failed.index, failed.exit_code) == (1, 7)
    log = at.send(GKE.pod_log(tried.job, tried.row, failed.name, tried.settings))
    assert log.text == "cannot fit series 12\n"


def test_a_pod_that_was_evicted_is_made_again_and_not_counted(place, a_try):
    at = place()
    tried = a_try(at).made()
    at.later(30)
    victim = tried.pods().pods[0]
    assert at.core.evict(NAMESPACE, victim.name, at.now)
    at.ending = lambda _started: 0
    at.later(120)
    assert tried.verdict() is WorkersVerdict.RUNNING
    again = [pod for pod in tried.pods().pods if pod.index == victim.index and pod.phase == "Succeeded"]
    assert len(again) == 1
    assert [pod.disrupted for pod in tried.pods().pods if pod.name == victim.name] in ([True], [])


def test_an_image_that_is_not_there_is_seen_as_what_pods_wait_for(place, a_try):
    at = place()
    tried = a_try(at)
    at.core.miss_image(tried.job.plan.image_uri)
    tried = tried.made()
    at.later(40)
    seen = tried.pods()
    assert seen.trouble is not None
    assert (seen.trouble.kind, seen.trouble.since) == (TroubleKind.IMAGE_PULL, seen.scheduled_at)
    assert seen.started_at is None


def test_pods_without_room_are_unschedulable_and_start_when_there_is_some(place, a_try):
    at = place(nodes=1)
    tried = a_try(at).made()
    at.later(60)
    seen = tried.pods()
    assert seen.trouble is not None
    assert seen.trouble.kind is TroubleKind.UNSCHEDULABLE
    at.core.add_node("default-pool", at.now)
    at.later(60)
    assert tried.pods().trouble is None
    assert len(at.started) == 2


def test_what_is_deleted_is_gone_with_its_pods(place, a_try):
    at = place()
    tried = a_try(at).made()
    at.later(30)
    assert tried.remains()
    assert tried.delete() == DeleteAnswer(accepted=True)
    at.later(90)
    assert tried.sight() == Absent()
    assert not tried.remains()
    assert tried.delete() == DeleteAnswer(gone=True)
    assert at.core.leftovers().jobs == at.core.leftovers().pods == ()


def test_a_create_that_was_never_answered_is_removed_by_its_labels(place, a_try):
    at = place()
    tried = a_try(at)
    tried.made()
    assert tried.row.target_id is None
    assert tried.delete() == DeleteAnswer(accepted=True)
    at.later(90)
    assert tried.sight() == Absent()


def test_a_job_of_the_same_name_is_a_strangers_and_outlives_our_delete(place, a_try):
    at = place()
    older = a_try(at).made()
    newer = replace(older, row=replace(older.row, nonce="f" * 16, target_id=None))
    assert newer.create() == NameTaken()
    assert newer.present().nonce != newer.row.nonce
    assert newer.delete() == DeleteAnswer(accepted=True), "which finds nothing of ours"
    believed = replace(older, row=replace(older.row, target_id="00000000-0000-0000-0000-000000000000"))
    assert believed.delete() == DeleteAnswer(gone=True)
    at.later(90)
    assert older.present().uid == older.row.target_id


def test_a_fleet_shows_our_jobs_page_by_page_and_nobody_elses(place, a_try):
    at = place(nodes=1)
    tried = a_try(at).made()
    (request,) = GKE.fleets(tried.settings, ["projects/p/locations/l/clusters/c"])
    page = GKE.fleet_page(at.send(request))
    assert page is not None
    assert [(worker.name, worker.sight) for worker in page.workers] == [(tried.row.name, tried.present())]
    assert page.next_page is None
    (others,) = GKE.fleets(replace(tried.settings, plane_id="other"), [request.cluster])
    empty = GKE.fleet_page(at.send(others))
    assert empty is not None
    assert empty.workers == ()
