"""Scenario files: what they can say, and how they are refused."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import pytest

from runtender.errors import Rejected
from runtender.local import scenarios
from runtender.local.scenario import Scenario, Shape, Stockout, load_scenario, parse_scenario
from runtender.local.scenario.cluster_rules import ClusterRule, PodBlow, PodRule
from runtender.local.scenario.rules import (
    Answer,
    Blow,
    Caller,
    CallRule,
    ClockJump,
    DemoPlan,
    EventKind,
    EventRule,
    ListRule,
    MachineRule,
    Moment,
    QuotaRule,
    StrangerKind,
    StrangerRule,
    Turn,
    Where,
    Workload,
)
from runtender.model import Phase

MANUAL = (Path(scenarios.__file__).parent / "README.md").read_text()

TEXT = """
name: everything
description: All that a scenario can say.
plane: {SF_STALL_GRACE_S: 300, SF_GUEST_SELF_DELETE: false}
regions: [us-east1, us-west1]
stockouts:
  - placement: 0
    until: 10m
    answer: http
    zones_available: [us-central1-b]
  - {zone: us-central1-b, region: us-central1, attempt: 2, first: 3, after: 90s}
quotas:
  - {meter: N2_CPUS, region: us-central1, limit: 0}
  - {meter: GPUS_ALL_REGIONS, limit: 2}
calls:
  - method: storage.objects.insert
    by: guest
    name: "*.terminal.json"
    skip: 1
    first: 2
    after: 10s
    until: 1h
    for: 5m
    answer: unavailable
  - {method: compute.instances.insert, answer: no_answer, applied: true, late: 60s}
lists:
  - missing: [us-central1-a]
  - {lag: 3m, first: 4}
events:
  - {event: terminal, arrives: [1m, 0s]}
machines:
  - {happens: preempt, once: booted, after: 20s, placement: 1, first: 1}
  - {happens: end_container, exit_code: 3}
strangers:
  - {zone: us-central1-a}
  - {what: job, first: 2}
cluster: {nodes: 0, more: 4, at: 10m, missing_images: ["other:1"]}
pods:
  - {happens: evict, index: 3, attempt: 1, after: 20s, first: 1}
  - {happens: end_container, exit_code: 1, out_of_memory: true}
clock:
  - {at: 2m, by: -90s}
demo:
  workload: task
  command: [sleep, "5"]
  copies: 10
  cancel_in: RUNNING
  limits: {run: 5m, capacity_wait: 10m}
  again: [0s, 10m]
  workers: 4
  image: other:1
expect:
  outcome: FAILED
  reason: Preempted
  exit_code: 3
  within: 2m
  inserts: 1
  insert_calls: [us-central1-a, us-central1-b]
"""

EVERYTHING = Scenario(
    name="everything",
    description="All that a scenario can say.",
    plane={"SF_STALL_GRACE_S": "300", "SF_GUEST_SELF_DELETE": "false"},
    regions=("us-east1", "us-west1"),
    stockouts=(
        Stockout(
            placement=0, until=timedelta(minutes=10), shape=Shape.HTTP, zones_available=("us-central1-b",)
        ),
        Stockout(zone="us-central1-b", region="us-central1", attempt=2, first=3, after=timedelta(seconds=90)),
    ),
    quotas=(
        QuotaRule(meter="N2_CPUS", region="us-central1", limit=0),
        QuotaRule(meter="GPUS_ALL_REGIONS", limit=2),
    ),
    calls=(
        CallRule(
            method="storage.objects.insert",
            by=Caller.GUEST,
            name="*.terminal.json",
            turn=Turn(
                skip=1,
                first=2,
                after=timedelta(seconds=10),
                until=timedelta(hours=1),
                lasting=timedelta(minutes=5),
            ),
            answer=Answer.UNAVAILABLE,
        ),
        CallRule(
            method="compute.instances.insert",
            answer=Answer.NO_ANSWER,
            applied=True,
            late=timedelta(seconds=60),
        ),
    ),
    lists=(ListRule(missing=("us-central1-a",)), ListRule(lag=timedelta(minutes=3), turn=Turn(first=4))),
    events=(EventRule(kind=EventKind.TERMINAL, arrives=(timedelta(minutes=1), timedelta())),),
    machines=(
        MachineRule(
            blow=Blow.PREEMPT,
            moment=Moment.BOOTED,
            after=timedelta(seconds=20),
            where=Where(placement=1),
            first=1,
        ),
        MachineRule(blow=Blow.END_CONTAINER, exit_code=3),
    ),
    strangers=(
        StrangerRule(where=Where(zone="us-central1-a")),
        StrangerRule(kind=StrangerKind.JOB, first=2),
    ),
    cluster=ClusterRule(nodes=0, more=4, at=timedelta(minutes=10), missing_images=("other:1",)),
    pods=(
        PodRule(blow=PodBlow.EVICT, index=3, attempt=1, after=timedelta(seconds=20), first=1),
        PodRule(blow=PodBlow.END_CONTAINER, exit_code=1, out_of_memory=True),
    ),
    clock=(ClockJump(at=timedelta(minutes=2), by=timedelta(seconds=-90)),),
    demo=DemoPlan(
        workload=Workload.TASK,
        command=("sleep", "5"),
        copies=10,
        cancel_in=Phase.RUNNING,
        limits={"run": "5m", "capacity_wait": "10m"},
        again=(timedelta(), timedelta(minutes=10)),
        workers=4,
        image="other:1",
    ),
    expect={
        "outcome": "FAILED",
        "reason": "Preempted",
        "exit_code": 3,
        "within": 120,
        "inserts": 1,
        "insert_calls": "us-central1-a, us-central1-b",
    },
)


def test_a_scenario_says_all_that_it_can_say(tmp_path: Path) -> None:
    path = tmp_path / "everything.yaml"
    path.write_text(TEXT)
    assert load_scenario(path) == EVERYTHING


def test_a_scenario_may_be_fair_weather() -> None:
    assert parse_scenario("name: fair") == Scenario()


def test_that_no_call_is_sent_can_be_expected() -> None:
    scenario = parse_scenario("expect: {outcome: NO_CAPACITY, exit_code: 5, insert_calls: []}")
    assert scenario.expect["insert_calls"] == "none"


def keys_of(text: str) -> set[str]:
    """Return the keys that may stand where `text` has an unknown one."""
    with pytest.raises(Rejected) as refused:
        parse_scenario(text)
    (fault,) = [fault for fault in refused.value.faults if fault.problem == "is not known"]
    return set(fault.remedy.removeprefix("use one of ").split(", "))


SECTIONS = {
    "stockouts": "stockouts: [{x: 1}]",
    "quotas": "quotas: [{x: 1}]",
    "calls": "calls: [{x: 1}]",
    "lists": "lists: [{x: 1}]",
    "events": "events: [{x: 1}]",
    "machines": "machines: [{x: 1}]",
    "strangers": "strangers: [{x: 1}]",
    "cluster": "cluster: {x: 1}",
    "pods": "pods: [{x: 1}]",
    "clock": "clock: [{x: 1}]",
    "plane": "plane: {x: 1}",
    "demo": "demo: {x: 1}",
    "limits": "demo: {limits: {x: 1}}",
    "expect": "expect: {x: 1}",
}


def test_every_field_of_a_scenario_can_be_written() -> None:
    assert {each.name for each in fields(Scenario)} == keys_of("x: 1")


@pytest.mark.parametrize("text", ["x: 1", *SECTIONS.values()], ids=["sections", *SECTIONS])
def test_every_key_is_explained(text: str) -> None:
    assert [key for key in keys_of(text) if f"`{key}`" not in MANUAL and f"{key}:" not in MANUAL] == []


@pytest.mark.parametrize(
    "words", [Shape, Caller, Answer, EventKind, Blow, Moment, Workload, PodBlow, StrangerKind]
)
def test_every_word_is_explained(words: type[StrEnum]) -> None:
    assert [word for word in words if f"`{word}`" not in MANUAL] == []


BAD = {
    "an unknown section": ("{name: x, weather: {}}", "weather: is not known; use one of calls, clock, cluster, demo"),
    "an unknown key": ("stockouts: [{zones: a}]", "stockouts[0].zones: is not known"),
    "a number for a duration": ("stockouts: [{until: 10}]", "stockouts[0].until: 10 is not a duration"),
    "a negative duration": ("stockouts: [{until: -10s}]", "stockouts[0].until: '-10s' is less than nothing"),
    "an unknown answer": ("stockouts: [{answer: no}]", "stockouts[0].answer: False is not known"),
    "text for a number": ("stockouts: [{first: few}]", "stockouts[0].first: 'few' is not a whole"),
    "a number for a truth": ("calls: [{applied: 1}]", "calls[0].applied: 1 is not a truth value"),
    "one entry for a list": ("stockouts: {}", "stockouts: is not a list"),
    "a list for a mapping": ("demo: []", "demo: [] is not a mapping"),
    "no YAML": ("{", "the scenario is not YAML"),
    "zones that are no list": ("stockouts: [{zones_available: a}]", "zones_available: 'a' is not a list"),
    "nothing": ("", "None is not a mapping"),
    "a call without an answer": ("calls: [{method: compute.instances.get}]", "calls[0].answer: is missing"),
    "an unknown method": (
        "calls: [{method: compute.instances.start, answer: forbidden}]",
        "calls[0].method: 'compute.instances.start' is not known",
    ),
    "an event that arrives nohow": ("events: [{event: tick}]", "events[0].arrives: is missing"),
    "an unknown blow": ("machines: [{happens: flood}]", "machines[0].happens: 'flood' is not known"),
    "a list that is no different": ("lists: [{first: 1}]", "lists[0]: says not how lists differ"),
    "a task without a command": ("demo: {workload: task}", "demo.command: goes with workload: task"),
    "a forecast with a command": ("demo: {command: [ls]}", "demo.command: goes with workload: task"),
    "no copies": ("demo: {copies: 0}", "demo.copies: is 0"),
    "an unknown phase": ("demo: {cancel_in: SLEEPING}", "demo.cancel_in: 'SLEEPING' is not known"),
    "an unknown setting": ("plane: {SF_PROJECT_ID: x}", "plane.SF_PROJECT_ID: is not known"),
    "a bad setting": ("plane: {SF_STALL_GRACE_S: soon}", "plane.SF_STALL_GRACE_S: 'soon' is not a whole"),
    "an unknown region": ("regions: [us-moon1]", "regions[0]: 'us-moon1' is not known; use one of us-east1,"),
    "the plane's own region": ("regions: [us-east1, us-central1]", "regions[1]: 'us-central1' is not known"),
    "a region twice": ("regions: [us-east1, us-east1]", "regions[1]: 'us-east1' stands there twice"),
    "a span that is none": ("demo: {again: [later]}", "demo.again[0]: 'later' is not a duration"),
    "an expectation of nothing": ("expect: {inserts: 1}", "expect.outcome: is missing"),
    "an unknown outcome": ("expect: {outcome: FINE, exit_code: 0}", "expect.outcome: 'FINE' is not known"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_bad_scenario_is_refused_by_the_path_of_the_fault(text: str, words: str) -> None:
    with pytest.raises(Rejected) as refused:
        parse_scenario(text)
    assert words in str(refused.value)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(Rejected) as refused:
        parse_scenario("{stockouts: [{first: -1, zone: 3}], calls: [{answer: forbidden}], clock: [{at: 1m}]}")
    assert [fault.field for fault in refused.value.faults] == [
        "stockouts[0].first",
        "stockouts[0].zone",
        "calls[0].method",
        "clock[0].by",
    ]
