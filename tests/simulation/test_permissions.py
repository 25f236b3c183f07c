"""The table of permissions against what is really called, both ways.

Worlds are played in which one entry point alone keeps a job going, through every kind of trouble. Each call of the plane
and of its machines is held against what the table grants to whoever made it; and of what the table grants, nothing may
be left that nobody called.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runtender.gcp import firestore, pubsub, serviceusage, storage
from runtender.ids import marker_object
from runtender.local.compute.stock import Stock
from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.scenario import Stockout
from runtender.local.simulation.cloud import START, WAREHOUSE
from runtender.local.simulation.clusters import ClusterSetup
from runtender.local.simulation.guests import ORDINARY, Behaviour, Death
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.pods import PodBehaviour
from runtender.local.simulation.weather import BROKEN_OFF, UNAVAILABLE, Weather
from runtender.local.simulation.world import CONFIG, ENVIRONMENT, World
from runtender.local.simulation.worlds import play
from runtender.local.store import MemoryStore
from runtender.model import Phase
from runtender.permissions.identities import CALLERS, Grant, Identity
from runtender.permissions.needs import NEEDS, Call, Where
from runtender.ports import Create, Increment, Remove, Update
from runtender.runtimes import gce_vm, gke_job
from runtender.settings import Settings

Deed = tuple[Identity, Call]

ROOT = Path(__file__).parents[2]
STATUS = "status"
SETTINGS = Settings.from_env(
    {**ENVIRONMENT, "SF_STATUS_BUCKET": STATUS, "SF_PROVISION_WAIT_S": "0", "SF_GKE_CLUSTER": "standing"}
)
FUNCTIONS = {
    SETTINGS.submit_topic: Identity.SUBMIT,
    SETTINGS.marker_topic: Identity.MARKER,
    SETTINGS.tick_topic: Identity.TICK,
}
PORT_CALLS = {
    "store.get": Call("firestore.projects.databases.documents.batchGet", Where.DATABASE),
    "store.find": Call("firestore.projects.databases.documents.runQuery", Where.DATABASE),
    "store.due": Call("firestore.projects.databases.documents.runQuery", Where.DATABASE),
    "store.commit": Call("firestore.projects.databases.documents.commit", Where.DATABASE),
}
WRITES = {
    Create: {"datastore.entities.create"},
    Update: {"datastore.entities.update"},
    # Makes the document where there is none.
    Increment: {"datastore.entities.create", "datastore.entities.update"},
    Remove: {"datastore.entities.delete"},
}
# By bucket and folder; the first that fits.
OBJECTS = {
    "storage.objects.insert": (
        (STATUS, "runs/status/", Where.MARKERS),
        (STATUS, "runs/gce-status/", Where.MARKER_COPIES),
        ("code", "runs/logs/", Where.LOGS),
        ("code", "runs/", Where.CONFIGS),
        (WAREHOUSE, "warehouse/artifacts/", Where.RESULTS),
    ),
    "storage.objects.get": (
        (STATUS, "runs/status/", Where.MARKERS),
        ("code", "", Where.CODE_BUCKET),
        (WAREHOUSE, "warehouse/artifacts/", Where.RESULTS),
        (WAREHOUSE, "", Where.INPUT_BUCKETS),
    ),
    "storage.objects.list": ((STATUS, "", Where.STATUS_BUCKET), (WAREHOUSE, "", Where.RESULTS_BUCKET)),
}
TOPICS = {
    SETTINGS.notify_topic: Where.NOTIFY_TOPIC,
    SETTINGS.dead_letter_topic: Where.DEAD_LETTER_TOPIC,
    SETTINGS.marker_topic: Where.MARKER_TOPIC,
    SETTINGS.tick_topic: Where.TICK_TOPIC,
}


class Onlooker(Weather):
    """Fair weather that writes down who calls what. Events of topics in `muted` are lost."""

    def __init__(self, muted: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self.muted = muted
        self.deeds: set[Deed] = set()
        self.writes: set[str] = set()
        self.replaced: set[Call] = set()
        self.names: set[str] = set()
        self.world: World | None = None

    def call(self, method, request, *, of_worker):
        call = self._call(method, request)
        identity = Identity.WORKER if of_worker else self._function()
        self.deeds.add((identity, call))
        if method == "storage.objects.insert" and "ifGenerationMatch" not in request.query:
            self.replaced.add(call)
        if call.on in (Where.MACHINES, Where.DISKS):
            self.names.add(request.segments[7])
        return super().call(method, request, of_worker=of_worker)

    def arrivals(self, subscription, message):
        topic = subscription.topic
        if topic in (SETTINGS.notify_topic, SETTINGS.dead_letter_topic):
            self.deeds.add((self._function(), _publish(topic)))
        elif topic == SETTINGS.marker_topic:
            self.deeds.add((Identity.STORAGE_AGENT, _publish(topic)))
        elif topic == SETTINGS.tick_topic:
            self.deeds.add((Identity.SCHEDULER, _publish(topic)))
        return () if topic in self.muted else super().arrivals(subscription, message)

    def add(self, other: Onlooker) -> None:
        self.deeds |= other.deeds
        self.writes |= other.writes
        self.replaced |= other.replaced
        self.names |= other.names

    def note_ports(self):
        assert self.world is not None
        for invocation in self.world.invocations:
            for name in invocation.calls:
                if name in PORT_CALLS:
                    self.deeds.add((FUNCTIONS[invocation.kind], PORT_CALLS[name]))

    def _function(self) -> Identity:
        assert self.world is not None
        invocation = self.world.invocation
        # What Pub/Sub puts aside by itself, it publishes outside of any function.
        return Identity.PUBSUB_AGENT if invocation is None else FUNCTIONS[invocation.kind]

    def _call(self, method: str, request: HttpRequest) -> Call:
        if method in OBJECTS:
            bucket, name = _object_of(request)
            if name.endswith("/pods.log"):
                return Call(method, Where.POD_LOGS)
            for known, folder, where in OBJECTS[method]:
                if bucket == known and name.startswith(folder):
                    return Call(method, where)
            raise AssertionError(f"{method} of gs://{bucket}/{name}")
        return next((call for call in NEEDS if call.method == method), Call(method))


class Documents(MemoryStore):
    """A store that notes which kinds of writes it is sent."""

    def __init__(self, writes: set[str]) -> None:
        super().__init__()
        self._writes = writes

    def commit(self, writes):
        for write in writes:
            self._writes |= WRITES[type(write)]
        return super().commit(writes)


def _publish(topic: str) -> Call:
    return Call("pubsub.projects.topics.publish", TOPICS[topic])


def _object_of(request: HttpRequest) -> tuple[str, str]:
    segments = request.segments
    bucket = segments[segments.index("b") + 1]
    name = request.query.get("name") or "/".join(segments[segments.index("o") + 1 :])
    return bucket, name


# --- stories: what happens in an hour in which one entry point alone hears of anything

Hour = Callable[[World, int], None]
GPU_TASK = {
    "name": "train",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "hardware": "gpu",
    "gpu_type": "L4",
}


def quiet(_world: World, _minute: int) -> None:
    """Nothing special."""


def preempt_once(world: World, minute: int) -> None:
    if minute == 8:
        for one in world.cloud.machines():
            assert world.cloud.zones.core.preempt(one.order.zone, one.order.name, world.now)


def keep_disk(world: World, minute: int) -> None:
    if minute == 4:
        for one in world.cloud.machines():
            world.cloud.zones.core.keep_disk(one)


def no_room(times: int) -> Stock:
    return Stock([Stockout(first=times)], opened_at=START)


def let_pods_speak(world: World, minute: int) -> None:
    for pod in world.cloud.cluster.running_pods():
        world.cloud.cluster.core.pod_log(pod["metadata"]["uid"], b"words\n", world.now)


def orphan_pods(world: World, minute: int) -> None:
    if minute == 2:
        for job in world.cloud.cluster.jobs():
            world.cloud.cluster.people.delete_job(job, "Orphan")


@dataclass(frozen=True, kw_only=True)
class Story:
    hour: Hour = quiet
    behaviour: Behaviour = ORDINARY
    no_room: int = 1
    message: Mapping[str, Any] = field(default_factory=dict)
    cluster: ClusterSetup | None = None
    # What the first creates of a Job are answered, which then make none.
    creates: tuple[HttpResponse, int] | None = None


ON_PODS = {"config": {**CONFIG, "python_runtime": "gke", "compute": {"workers": 2}}}
ON_MACHINES = {
    "another place is tried": Story(),
    "a second pass looks at quota": Story(
        no_room=4,
        message={"kind": "task", "config": GPU_TASK, "limits": {"run": "20m", "capacity_wait": "50m"}},
    ),
    "the machine is preempted": Story(
        hour=preempt_once, behaviour=Behaviour(work_s=900, mute_when_stopped=True)
    ),
    "the worker cannot store its end": Story(behaviour=Behaviour(dies=Death.BEFORE_STORING)),
    "the disk stays": Story(hour=keep_disk),
    "the worker makes no progress": Story(behaviour=Behaviour(work_s=3000)),
}
ON_A_CLUSTER = {
    "a create is tried again": Story(creates=(UNAVAILABLE, 1), cluster=ClusterSetup()),
    "no create is ever answered": Story(creates=(BROKEN_OFF, 100), cluster=ClusterSetup()),
    "a worker fails": Story(hour=let_pods_speak, cluster=ClusterSetup(pods=PodBehaviour(exit_code=3))),
    "the pods stay": Story(hour=orphan_pods, cluster=ClusterSetup()),
    "there is no node": Story(cluster=ClusterSetup(nodes=0)),
}
STORIES = (*ON_MACHINES.values(), *(replace(story, message=ON_PODS) for story in ON_A_CLUSTER.values()))


@pytest.fixture(scope="module")
def played() -> Iterator[Onlooker]:
    """All that was seen in all stories."""
    logging.getLogger("runtender").setLevel(logging.CRITICAL)
    seen = Onlooker()
    for identity in FUNCTIONS.values():
        for story in STORIES:
            seen.add(_tell(identity, story))
    seen.add(_submit_all_sorts())
    yield seen
    logging.getLogger("runtender").setLevel(logging.NOTSET)


def _world(watcher: Onlooker, **parts: Any) -> World:
    world = World(settings=SETTINGS, weather=watcher, store=Documents(watcher.writes), **parts)
    watcher.world = world
    return world


def _tell(identity: Identity, story: Story) -> Onlooker:
    watcher = Onlooker(_unheard_by(identity, story))
    world = _world(watcher, behaviour=story.behaviour, stock=no_room(story.no_room), cluster=story.cluster)
    if story.creates is not None:
        answer, times = story.creates
        watcher.plan("kubernetes.jobs.create", answer, times=times)
    try:
        world.submit(**{"config": CONFIG, **story.message})
        for minute in range(75):
            # Before each tick, so that it is the event that finds what there is to do.
            world.run(timedelta(seconds=50))
            _wake(world, identity)
            world.run(timedelta(seconds=10))
            story.hour(world, minute)
            if world.is_at_rest():
                break
    finally:
        world.close()
    assert world.job.phase is Phase.DONE, f"{identity}\n{world.story()}"
    watcher.note_ports()
    return watcher


def _unheard_by(identity: Identity, story: Story) -> frozenset[str]:
    heard = {identity, Identity.SUBMIT}
    if identity is Identity.MARKER and story.cluster is not None:
        # A marker that tells nothing new of a Job is left to the tick.
        heard.add(Identity.TICK)
    return frozenset(topic for topic, owner in FUNCTIONS.items() if owner not in heard)


def _wake(world: World, identity: Identity) -> None:
    job = world.job
    if identity is Identity.SUBMIT:
        world.publish({"action": "step", "job_key": job.job_key, "request_id": str(world.now)})
    if identity is Identity.MARKER:
        nonce = job.resources[-1].nonce if job.resources else "0" * 16
        name = marker_object(job.job_key, nonce, None, "terminal")
        facts = {"eventType": "OBJECT_FINALIZE", "bucketId": STATUS, "objectId": name}
        world.cloud.topics.publish(SETTINGS.marker_topic, b"", facts, world.now)


def _submit_all_sorts() -> Onlooker:
    """Submit a config by its address, a message that cannot be read, and one that no function lives through."""
    watcher = Onlooker()
    world = _world(watcher)
    world.cloud.write_object("code", "flights.json", json.dumps(CONFIG).encode())
    try:
        world.publish({"config_uri": "gs://code/flights.json"})
        world.cloud.topics.publish(SETTINGS.submit_topic, b"no JSON", {}, world.now)
        world.run(timedelta(minutes=10))
        watcher.fates += [Fate(kill_at=0)] * 200
        world.publish({"config": CONFIG, "force": True})
        world.run(timedelta(hours=2))
    finally:
        world.close()
    watcher.note_ports()
    return watcher


# --- the table against what was seen

_SERVICE_USAGE = Call("serviceusage.services.consumerQuotaMetrics.get")
_BOOTSTRAPPED = (
    "tests/unit/docker_worker/test_main.py::test_staged_and_bootstrapped_it_forecasts_the_example_panel"
)
_PULLED = (
    "tests/unit/runtimes/gce_startup/test_preparation.py::test_only_googles_registries_are_told_who_the_vm_is"
)
_ASKED = "tests/unit/gcp/test_serviceusage.py::test_what_it_does_not_tell_service_usage_is_asked"
_SECRET = (
    "tests/unit/runtimes/gce_startup/test_secrets.py::"
    "test_the_container_has_the_secret_and_the_rest_of_its_environment"
)
_PUSHED = "tests/functions/test_entry_points.py::test_a_submit_message_becomes_a_run_with_a_machine"
# What the simulated world has no service for, and the test that shows it called.
SHOWN_ELSEWHERE: Mapping[Deed, str] = {
    **{(identity, _SERVICE_USAGE): _ASKED for identity in FUNCTIONS.values()},
    (Identity.WORKER, Call("storage.objects.get", Where.CODE_BUCKET)): _BOOTSTRAPPED,
    (Identity.WORKER, Call("storage.objects.get", Where.INPUT_BUCKETS)): _BOOTSTRAPPED,
    (Identity.WORKER, Call("artifactregistry.pull", Where.REPOSITORY)): _PULLED,
    (Identity.WORKER, Call("secretmanager.projects.secrets.versions.access", Where.SECRETS)): _SECRET,
    (Identity.PUSHER, Call("run.invoke", Where.SERVICES)): _PUSHED,
}
# What Google's own programs do on our behalf; no code of ours makes the call.
GOOGLES_OWN = {
    (Identity.WORKER, Call("logging.entries.write")),
    (
        Identity.PUBSUB_AGENT,
        Call("iamcredentials.projects.serviceAccounts.generateIdToken", Where.PUSHER_ACCOUNT),
    ),
    (Identity.PUBSUB_AGENT, Call("pubsub.projects.topics.publish", Where.DEAD_LETTER_TOPIC)),
    (Identity.PUBSUB_AGENT, Call("pubsub.projects.subscriptions.pull", Where.SUBSCRIPTIONS)),
    (Identity.COMPUTE_AGENT, Call("cloudkms.projects.locations.keyRings.cryptoKeys.encrypt", Where.DISK_KEY)),
}
GRANTED = {
    (identity, grant.call)
    for identity, grants in CALLERS.items()
    for grant in grants
    if isinstance(grant, Grant)
}


def test_nobody_calls_what_the_table_does_not_grant(played):
    assert played.deeds - GRANTED == set()


def test_the_table_grants_nothing_that_nobody_calls(played):
    assert GRANTED - played.deeds - SHOWN_ELSEWHERE.keys() - GOOGLES_OWN == set()


def test_what_is_shown_elsewhere_is_not_seen_here_and_is_in_the_table(played):
    elsewhere = SHOWN_ELSEWHERE.keys() | GOOGLES_OWN
    assert elsewhere & played.deeds == set()
    assert elsewhere - GRANTED == set()


@pytest.mark.parametrize("test", sorted(set(SHOWN_ELSEWHERE.values())))
def test_a_test_that_is_named_as_proof_is_there(test):
    file, _, name = test.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text()


def test_a_commit_needs_what_its_writes_need(played):
    (commit,) = (call for call in NEEDS if call.method.endswith(".commit"))
    assert played.writes == {need.permission for need in NEEDS[commit]}


def test_only_what_may_be_replaced_is_written_without_a_precondition(played):
    replaceable = {
        call for call, needs in NEEDS.items() if "storage.objects.delete" in {one.permission for one in needs}
    }
    assert played.replaced == replaceable


def test_every_machine_and_disk_that_is_looked_at_has_a_name_that_the_condition_lets_through(played):
    assert played.names
    assert [name for name in played.names if not name.startswith("sf-")] == []


@pytest.mark.parametrize("seed", range(1000, 1016))
def test_no_trouble_makes_a_function_call_what_it_is_not_granted(seed):
    granted = {(identity, call.method) for identity, call in GRANTED}
    called = {
        (FUNCTIONS[invocation.kind], PORT_CALLS[name].method if name in PORT_CALLS else name)
        for invocation in play(seed).invocations
        for name in invocation.calls
    }
    apis = {(identity, method) for identity, method in called if method.count(".") > 1}
    assert apis
    assert apis - granted == set()


def test_the_adapters_and_the_table_know_the_same_methods():
    adapters = (firestore, gce_vm, gke_job, pubsub, serviceusage, storage)
    methods = {method for adapter in adapters for method in adapter.METHODS}
    assert methods == {call.method for identity, call in GRANTED if identity in FUNCTIONS.values()}
