"""A scenario's rules at the seams of the simulated services, with real requests and a hand on the clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtender.ids import job_key, marker_object
from runtender.local.compute.core import ComputeCore
from runtender.local.environment import plane_settings
from runtender.local.http import DROPPED, Fault, HttpRequest, HttpResponse
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.objects import ObjectsCore
from runtender.local.scenario.answers import ANSWERS, answer_to
from runtender.local.scenario.calls import CallFaults, target_of
from runtender.local.scenario.events import EventArrivals
from runtender.local.scenario.lists import FleetLists
from runtender.local.scenario.rules import (
    Answer,
    Caller,
    CallRule,
    EventKind,
    EventRule,
    ListRule,
    StrangerKind,
    StrangerRule,
    Turn,
    Where,
)
from runtender.local.scenario.strangers import Strangers, stranger_insert
from runtender.local.topics import Message, plane_subscriptions
from runtender.settings import Settings

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = Settings.from_env(plane_settings(1))
INSERT = "compute.instances.insert"
FLEET = "compute.instances.aggregatedList"
UPLOAD = "storage.objects.insert"
MINUTE = timedelta(minutes=1)


@dataclass
class Sky:
    """What the rules reach: a clock, and what they did."""

    elapsed: timedelta = timedelta()
    killed: int = 0
    later: list[tuple[str, timedelta]] = field(default_factory=list)

    def kill(self) -> None:
        self.killed += 1

    def faults(self, *rules: CallRule) -> CallFaults:
        return CallFaults(
            rules,
            elapsed=lambda: self.elapsed,
            kill=self.kill,
            apply_later=lambda method, _, span: self.later.append((method, span)),
        )


def a_request(method: str = "GET", path: str = "/", *, guest: bool = False, **more: Any) -> HttpRequest:
    headers = {"Authorization": "Bearer local-worker-sf-vm"} if guest else {}
    return HttpRequest(method=method, path=path, headers={**headers, **more.pop("headers", {})}, **more)


def an_insert(name: str = "sf-vm", **labels: str) -> HttpRequest:
    body = json.dumps({"name": name, "labels": labels}).encode()
    return a_request("POST", "/compute/v1/projects/local/zones/us-central1-a/instances", body=body)


def an_upload(name: str, *, guest: bool = False) -> HttpRequest:
    query = {"uploadType": "media", "name": name}
    return a_request("POST", "/upload/storage/v1/b/local-code/o", guest=guest, query=query)


def a_multipart_upload(name: str) -> HttpRequest:
    lines = [
        "--x", "Content-Type: application/json", "", json.dumps({"name": name}),
        "--x", "Content-Type: text/plain", "", "body", "--x--", "",
    ]  # fmt: skip
    return a_request(
        "POST",
        "/upload/storage/v1/b/local-code/o",
        query={"uploadType": "multipart"},
        headers={"Content-Type": "multipart/related; boundary=x"},
        body="\r\n".join(lines).encode(),
    )


def hits(faults: CallFaults, calls: Sequence[tuple[str, HttpRequest]]) -> list[bool]:
    return [faults(method, request) is not None for method, request in calls]


def test_a_rule_hits_calls_of_its_method_only() -> None:
    faults = Sky().faults(CallRule(method=INSERT, answer=Answer.FORBIDDEN))
    assert faults(INSERT, an_insert()) == Fault(answer=ANSWERS[Answer.FORBIDDEN])
    assert faults("compute.instances.get", a_request()) is None


@pytest.mark.parametrize(
    ("turn", "expected"),
    [
        pytest.param(Turn(), [True, True, True, True], id="all"),
        pytest.param(Turn(first=2), [True, True, False, False], id="the first two"),
        pytest.param(Turn(skip=1), [False, True, True, True], id="not the first"),
        pytest.param(Turn(skip=1, first=1), [False, True, False, False], id="the second"),
        pytest.param(Turn(after=2 * MINUTE), [False, False, True, True], id="from two minutes on"),
        pytest.param(Turn(until=2 * MINUTE), [True, True, False, False], id="for two minutes"),
        pytest.param(
            Turn(after=MINUTE, lasting=2 * MINUTE),
            [False, True, True, False],
            id="for two minutes from the first",
        ),
        pytest.param(
            Turn(after=MINUTE, skip=1), [False, False, True, True], id="the second of those in time"
        ),
    ],
)
def test_a_rule_hits_when_it_is_its_turn(turn: Turn, expected: list[bool]) -> None:
    sky, found = Sky(), []
    faults = sky.faults(CallRule(method=INSERT, answer=Answer.FORBIDDEN, turn=turn))
    for _ in expected:
        found.append(faults(INSERT, an_insert()) is not None)
        sky.elapsed += MINUTE
    assert found == expected


def test_of_two_rules_the_second_has_its_turn_when_the_first_is_through() -> None:
    faults = Sky().faults(
        CallRule(method=INSERT, answer=Answer.UNAVAILABLE, turn=Turn(first=1)),
        CallRule(method=INSERT, answer=Answer.RATE_LIMITED, turn=Turn(first=1)),
    )
    answers = [faults(INSERT, an_insert()) for _ in range(3)]
    assert [fault and fault.answer.status for fault in answers] == [503, 403, None]


@pytest.mark.parametrize(
    ("by", "expected"),
    [(None, [True, True]), (Caller.PLANE, [True, False]), (Caller.GUEST, [False, True])],
    ids=["anybody", "plane", "guest"],
)
def test_a_rule_tells_a_startup_script_from_everybody_else(by: Caller | None, expected: list[bool]) -> None:
    faults = Sky().faults(CallRule(method=UPLOAD, by=by, answer=Answer.UNAVAILABLE))
    assert hits(faults, [(UPLOAD, an_upload("x")), (UPLOAD, an_upload("x", guest=True))]) == expected


@pytest.mark.parametrize(
    ("method", "request_for"),
    [
        pytest.param(INSERT, an_insert, id="insert"),
        pytest.param(
            "compute.instances.delete",
            lambda name: a_request(
                "DELETE", f"/compute/v1/projects/local/zones/us-central1-a/instances/{name}"
            ),
            id="delete",
        ),
        pytest.param(UPLOAD, an_upload, id="upload"),
        pytest.param(UPLOAD, a_multipart_upload, id="upload in two parts"),
        pytest.param(
            "storage.objects.get",
            lambda name: a_request("GET", f"/storage/v1/b/local-code/o/{name}"),
            id="download",
        ),
    ],
)
def test_a_rule_can_name_machine_or_object(method: str, request_for: Callable[[str], HttpRequest]) -> None:
    faults = Sky().faults(CallRule(method=method, name="sf-*", answer=Answer.UNAVAILABLE))
    assert hits(faults, [(method, request_for("sf-vm")), (method, request_for("other"))]) == [True, False]


@pytest.mark.parametrize("kind", ["multipart", "resumable", "media"])
def test_a_malformed_call_is_left_to_the_service(kind: str) -> None:
    request = a_request("POST", "/upload/storage/v1/b/local-code/o", query={"uploadType": kind}, body=b"{")
    faults = Sky().faults(CallRule(method=UPLOAD, name="x*", answer=Answer.UNAVAILABLE))
    assert faults(UPLOAD, request) is None


def test_a_call_may_take_effect_all_the_same_at_once_or_later() -> None:
    sky = Sky()
    faults = sky.faults(
        CallRule(method=INSERT, answer=Answer.NO_ANSWER, applied=True, turn=Turn(first=1)),
        CallRule(method=INSERT, answer=Answer.INTERNAL_ERROR, applied=True, late=MINUTE),
    )
    first, second = faults(INSERT, an_insert()), faults(INSERT, an_insert())
    assert first == Fault(answer=ANSWERS[Answer.NO_ANSWER], applied=True)
    assert second == Fault(answer=ANSWERS[Answer.INTERNAL_ERROR])
    assert sky.later == [(INSERT, MINUTE)]


def test_functions_are_killed_instead_of_answered() -> None:
    sky = Sky()
    faults = sky.faults(CallRule(method=INSERT, answer=Answer.FUNCTIONS_KILLED, turn=Turn(first=1)))
    fault = faults(INSERT, an_insert())
    assert fault is not None
    assert fault.answer.status == 0
    faults(INSERT, an_insert())
    assert sky.killed == 1


# --- events


def arrivals_of(topic: str, *rules: EventRule, **attributes: str) -> list[list[int]]:
    """Return the delays in seconds, of each of three messages on a topic's push subscription."""
    arrivals = EventArrivals(rules, settings=SETTINGS, elapsed=timedelta, scale=2)
    (subscription,) = [
        one for one in plane_subscriptions(SETTINGS, "http://f") if one.name == f"{topic}-push"
    ]
    message = Message(id="1", topic=topic, body=b"x", attributes=attributes, published_at=NOW)
    return [[int(delay.total_seconds()) for delay in arrivals(subscription, message)] for _ in range(3)]


def marker(stage: Any) -> str:
    return marker_object(job_key("flights-0123456789ab", "statistical", 1), "0123456789abcdef", 0, stage)


def test_an_event_is_lost_doubled_or_late_as_often_as_its_rule_says() -> None:
    rule = EventRule(kind=EventKind.TICK, arrives=(), turn=Turn(first=1))
    double = EventRule(kind=EventKind.TICK, arrives=(timedelta(), MINUTE), turn=Turn(first=1))
    assert arrivals_of("sf-tick", rule, double) == [[], [0, 30], [0]]


@pytest.mark.parametrize(
    ("kind", "topic", "attributes"),
    [
        (EventKind.SUBMIT, "sf-submit", {}),
        (EventKind.TICK, "sf-tick", {}),
        (EventKind.STARTED, "sf-marker", {"objectId": marker("started")}),
        (EventKind.TERMINAL, "sf-marker", {"objectId": marker("terminal")}),
    ],
)
def test_events_are_told_apart_by_kind(kind: EventKind, topic: str, attributes: dict[str, str]) -> None:
    for each in EventKind:
        expected = [[]] * 3 if each is kind else [[0]] * 3
        assert arrivals_of(topic, EventRule(kind=each, arrives=()), **attributes) == expected


def test_what_waits_to_be_pulled_always_arrives() -> None:
    arrivals = EventArrivals(
        [EventRule(kind=EventKind.SUBMIT, arrives=())], settings=SETTINGS, elapsed=timedelta, scale=1
    )
    pull = next(one for one in plane_subscriptions(SETTINGS, "http://f") if one.endpoint is None)
    message = Message(id="1", topic=pull.topic, body=b"x", attributes={}, published_at=NOW)
    assert arrivals(pull, message) == (timedelta(),)


# --- the fleet list, and strangers


@dataclass
class Project:
    """A core whose faults are lists and strangers of a scenario."""

    lists: Sequence[ListRule] = ()
    strangers: Sequence[StrangerRule] = ()
    elapsed: timedelta = timedelta()

    def __post_init__(self) -> None:
        self.core = ComputeCore(project="local", faults=self._fault)
        self.rules = FleetLists(
            self.lists, elapsed=lambda: self.elapsed, silence=self.core.silence, look=self._truth
        )
        self.others = Strangers(self.strangers, self._truth, self._truth)

    def call(self, request: HttpRequest) -> HttpResponse:
        return self.core.handle(request, NOW + self.elapsed)

    def _truth(self, request: HttpRequest) -> HttpResponse:
        return self.core.apply(request, NOW + self.elapsed)

    def fleet(self) -> dict[str, Any]:
        answer = self.call(a_request("GET", "/compute/v1/projects/local/aggregated/instances")).json()
        names = [one["name"] for scope in answer["items"].values() for one in scope.get("instances", ())]
        return {"names": names, "unreachable": len(answer.get("unreachables", ()))}

    def _fault(self, method: str, request: HttpRequest) -> Fault | None:
        if method == INSERT:
            self.others.meet(request)
        return self.rules.fault(request) if method == FLEET else None


def a_machine(zone: str = "us-central1-a", name: str = "sf-vm") -> HttpRequest:
    request = stranger_insert("local", zone, name, disk=f"{name}-{zone}")
    return a_request("POST", request.path, body=request.body)


def test_a_list_lacks_the_zones_that_are_missing_and_names_them() -> None:
    project = Project(lists=[ListRule(missing=("us-central1-a",), turn=Turn(first=1))])
    project.call(a_machine("us-central1-a", "one"))
    project.call(a_machine("us-central1-b", "two"))
    assert project.fleet() == {"names": ["two"], "unreachable": 1}
    assert project.fleet() == {"names": ["one", "two"], "unreachable": 0}


def test_a_list_shows_what_was_there_some_time_ago() -> None:
    project = Project(lists=[ListRule(lag=2 * MINUTE)])
    seen = []
    for minute in range(5):
        project.elapsed = minute * MINUTE
        if minute == 1:
            project.call(a_machine())
        seen.append(project.fleet()["names"])
    assert seen == [[], [], [], ["sf-vm"], ["sf-vm"]]


def test_a_stranger_stands_where_our_machine_was_to_be() -> None:
    project = Project(strangers=[StrangerRule(where=Where(zone="us-central1-b"))])
    assert project.call(a_machine("us-central1-a")).status == 200
    refused = project.call(a_machine("us-central1-b"))
    assert refused.status == 409
    (stranger,) = [one for one in project.core.machines() if one.order.zone == "us-central1-b"]
    assert project.others.ids == {stranger.id}
    assert stranger.order.labels == {}
    assert project.core.counts() == {INSERT: 2}, "what the scenario does itself is not counted"
    assert len(project.core.leftovers().instances) == 2
    assert len(project.core.leftovers(project.others.ids).instances) == 1
    assert len(project.core.leftovers(project.others.ids).disks) == 1


def test_a_strangers_job_stands_where_ours_was_to_be_and_has_ended() -> None:
    core = KubernetesCore(born=NOW)

    def truth(request: HttpRequest) -> HttpResponse:
        return core.apply(request, NOW)

    others = Strangers([StrangerRule(kind=StrangerKind.JOB)], truth, truth)
    path = "/apis/batch/v1/namespaces/default/jobs"
    create = a_request("POST", path, body=json.dumps({"metadata": {"name": "sf-r-1"}}).encode())
    others.meet_job(create)
    others.meet_job(create)

    (job,) = core.documents("jobs")
    assert others.ids == {job["metadata"]["uid"]}
    assert (job["metadata"]["name"], job["metadata"].get("labels")) == ("sf-r-1", None)
    assert [one["type"] for one in job["status"]["conditions"] if one["status"] == "True"][-1] == "Complete"
    assert core.counts() == {}


@pytest.mark.parametrize("answer", Answer)
def test_kubernetes_says_it_in_its_own_way(answer: Answer) -> None:
    said = answer_to("kubernetes.jobs.get", answer)
    if said is ANSWERS[answer]:
        assert said is DROPPED
    else:
        assert (said.json()["kind"], said.json()["code"]) == ("Status", said.status)


A_JOB = {"metadata": {"name": "sf-2"}}


@pytest.mark.parametrize(
    ("method", "verb", "path", "body", "name"),
    [
        pytest.param("jobs.get", "GET", "/apis/batch/v1/namespaces/d/jobs/sf-1", {}, "sf-1", id="get"),
        pytest.param(
            "jobs.create",
            "POST",
            "/apis/batch/v1/namespaces/d/jobs",
            {"metadata": {"name": "sf-2"}},
            "sf-2",
            id="create",
        ),
        pytest.param("pods.list", "GET", "/api/v1/namespaces/d/pods", {}, "", id="list"),
        pytest.param("version.get", "GET", "/version", {}, "", id="the server itself"),
    ],
)
def test_a_call_is_about_a_job_by_its_name(method: str, verb: str, path: str, body: Any, name: str) -> None:
    assert target_of(f"kubernetes.{method}", a_request(verb, path, body=json.dumps(body).encode())) == name


def test_every_answer_is_one_of_googles() -> None:
    assert set(ANSWERS) == set(Answer)
    core = ObjectsCore(faults=lambda _method, _request: Fault(answer=ANSWERS[Answer.UNAVAILABLE]))
    answer = core.handle(an_upload("x"), NOW)
    assert answer.json()["error"]["code"] == 503
