"""A scenario's file: which keys it may have, what each becomes, and what goes together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from runtender.errors import Rejected
from runtender.local import objects
from runtender.local.compute import routes
from runtender.local.compute.catalogue import Catalogue
from runtender.local.environment import REGION, plane_settings
from runtender.local.scenario.cluster_file import CLUSTER_METHODS, read_cluster, read_pod
from runtender.local.scenario.reading import Keys, Read, Reader, one_of, word_of
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
    Scenario,
    Shape,
    Stockout,
    StrangerKind,
    StrangerRule,
    Turn,
    Where,
    Workload,
    zones_text,
)
from runtender.local.topics import rest
from runtender.model import Outcome, Phase, Reason
from runtender.settings import Settings

_METHODS = (*routes.METHODS, *objects.METHODS, *rest.METHODS, *CLUSTER_METHODS)

# The plane's settings that bear on how it takes trouble; the others name places, which are the local cloud's.
_PLANE = (
    "SF_ALTERNATIVES",
    "SF_API_BUDGET",
    "SF_BATCH_JOB_WAIT_S",
    "SF_BOOT_LIMIT_S",
    "SF_CREATE_GRACE_S",
    "SF_GUEST_SELF_DELETE",
    "SF_LIMITS",
    "SF_ORPHAN_GRACE_S",
    "SF_PLACEMENT_BLOCK_S",
    "SF_PROVISION_WAIT_S",
    "SF_STALL_GRACE_S",
    "SF_WATCH_INTERVAL_S",
)

_WHERE: Keys = {
    "zone": ("zone", Reader.text),
    "region": ("region", Reader.text),
    "placement": ("placement", Reader.whole),
    "attempt": ("attempt", Reader.whole),
}
_TURN: Keys = {
    "skip": ("skip", Reader.whole),
    "first": ("first", Reader.whole),
    "after": ("after", Reader.duration),
    "until": ("until", Reader.duration),
    "for": ("lasting", Reader.duration),
}
_STOCKOUT: Keys = {
    **_WHERE,
    "first": ("first", Reader.whole),
    "after": ("after", Reader.duration),
    "until": ("until", Reader.duration),
    "answer": ("shape", word_of(Shape)),
    "zones_available": ("zones_available", Reader.texts),
}
_QUOTA: Keys = {
    "meter": ("meter", Reader.text),
    "limit": ("limit", Reader.whole),
    "region": ("region", Reader.text),
}
_CALL: Keys = {
    "method": ("method", one_of(_METHODS)),
    "by": ("by", word_of(Caller)),
    "name": ("name", Reader.text),
    "answer": ("answer", word_of(Answer)),
    "applied": ("applied", Reader.truth),
    "late": ("late", Reader.duration),
}
_LIST: Keys = {"missing": ("missing", Reader.texts), "lag": ("lag", Reader.duration)}
_EVENT: Keys = {"event": ("kind", word_of(EventKind)), "arrives": ("arrives", Reader.durations)}
_MACHINE: Keys = {
    "happens": ("blow", word_of(Blow)),
    "once": ("moment", word_of(Moment)),
    "after": ("after", Reader.duration),
    "first": ("first", Reader.whole),
    "exit_code": ("exit_code", Reader.whole),
    "out_of_memory": ("out_of_memory", Reader.truth),
}
_STRANGER: Keys = {"what": ("kind", word_of(StrangerKind)), "first": ("first", Reader.whole)}
_CLOCK: Keys = {"at": ("at", Reader.duration), "by": ("by", Reader.signed_duration)}
_LIMITS: Keys = {"capacity_wait": ("capacity_wait", Reader.text), "run": ("run", Reader.text)}


def _limits(reader: Reader, path: str, value: object) -> Mapping[str, str]:
    return reader.record(path, value, _LIMITS) or {}


_DEMO: Keys = {
    "workload": ("workload", word_of(Workload)),
    "command": ("command", Reader.texts),
    "config": ("config", Reader.mapping),
    "copies": ("copies", Reader.whole),
    "cancel_in": ("cancel_in", word_of(Phase)),
    "limits": ("limits", _limits),
    "again": ("again", Reader.durations),
    "workers": ("workers", Reader.whole),
    "compare_with_workers": ("compare_with_workers", Reader.whole),
    "image": ("image", Reader.text),
}


def _zones(reader: Reader, path: str, value: object) -> str:
    return zones_text(reader.texts(path, value))


def _seconds(reader: Reader, path: str, value: object) -> int:
    return reader.duration(path, value) // timedelta(seconds=1)


_EXPECT: Keys = {
    "outcome": ("outcome", word_of(Outcome)),
    "reason": ("reason", word_of(Reason)),
    "exit_code": ("exit_code", Reader.whole),
    "detail": ("detail", Reader.text),
    "log": ("log", Reader.text),
    "runs": ("runs", Reader.whole),
    "within": ("within", _seconds),
    "inserts": ("inserts", Reader.whole),
    "jobs": ("jobs", Reader.whole),
    "insert_calls": ("insert_calls", _zones),
    "refused_deletes": ("refused_deletes", Reader.whole),
    "functions_started": ("functions_started", Reader.whole),
    "strangers": ("strangers", Reader.whole),
}


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises `Rejected` naming every fault in it, `OSError` when it cannot be read."""
    return parse_scenario(path.read_text(encoding="utf-8"))


def parse_scenario(text: str) -> Scenario:
    """Read a scenario from YAML. Raises `Rejected` naming every fault with its path."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Rejected.because("", f"the scenario is not YAML: {error}") from error
    reader = Reader()
    fields = reader.fields("", document, _SECTIONS)
    read = {key: _SECTIONS[key](reader, key, value) for key, value in fields.items()}
    reader.finish()
    return Scenario(**{"name": "unnamed", **read})


def _stockout(reader: Reader, path: str, value: object) -> Stockout | None:
    fields = reader.record(path, value, _STOCKOUT)
    return None if fields is None else Stockout(**fields)


def _quota(reader: Reader, path: str, value: object) -> QuotaRule | None:
    fields = reader.record(path, value, _QUOTA, required=("meter", "limit"))
    return None if fields is None else QuotaRule(**fields)


def _call(reader: Reader, path: str, value: object) -> CallRule | None:
    fields = reader.record(path, value, {**_TURN, **_CALL}, required=("method", "answer"))
    return None if fields is None else CallRule(turn=Turn(**_taken(fields, _TURN)), **fields)


def _list(reader: Reader, path: str, value: object) -> ListRule | None:
    fields = reader.record(path, value, {**_TURN, **_LIST})
    if fields is not None and not {"missing", "lag"} & set(fields):
        reader.fault(path, "says not how lists differ", "write missing: [a zone], or lag: a duration")
    return None if fields is None else ListRule(turn=Turn(**_taken(fields, _TURN)), **fields)


def _event(reader: Reader, path: str, value: object) -> EventRule | None:
    fields = reader.record(path, value, {**_TURN, **_EVENT}, required=("event", "arrives"))
    return None if fields is None else EventRule(turn=Turn(**_taken(fields, _TURN)), **fields)


def _machine(reader: Reader, path: str, value: object) -> MachineRule | None:
    fields = reader.record(path, value, {**_WHERE, **_MACHINE}, required=("happens",))
    return None if fields is None else MachineRule(where=Where(**_taken(fields, _WHERE)), **fields)


def _stranger(reader: Reader, path: str, value: object) -> StrangerRule | None:
    fields = reader.record(path, value, {**_WHERE, **_STRANGER})
    return None if fields is None else StrangerRule(where=Where(**_taken(fields, _WHERE)), **fields)


def _jump(reader: Reader, path: str, value: object) -> ClockJump | None:
    fields = reader.record(path, value, _CLOCK, required=("at", "by"))
    return None if fields is None else ClockJump(**fields)


def _demo(reader: Reader, path: str, value: object) -> DemoPlan:
    plan = DemoPlan(**reader.record(path, value, _DEMO) or {})
    if (plan.workload is Workload.TASK) != bool(plan.command):
        reader.fault(f"{path}.command", "goes with workload: task, and only with it", "write both or none")
    for key in ("copies", "workers", "compare_with_workers"):
        if getattr(plan, key) == 0:
            reader.fault(f"{path}.{key}", "is 0", "write 1 or more")
    if plan.compare_with_workers and plan.workload is Workload.TASK:
        reader.fault(f"{path}.compare_with_workers", "a task has no cells", "compare forecasts")
    return plan


def _plane(reader: Reader, path: str, value: object) -> Mapping[str, str]:
    """Read settings of the plane, by the plane's own rules."""
    words = {True: "true", False: "false"}
    fields = reader.fields(path, value, _PLANE)
    settings = {name: words[one] if isinstance(one, bool) else str(one) for name, one in fields.items()}
    try:
        Settings.from_env({**plane_settings(1.0), **settings})
    except Rejected as rejected:
        reader.adopt(path, rejected)
    return settings


def _regions(reader: Reader, path: str, value: object) -> tuple[str, ...]:
    """Read the regions beside the plane's own, each once."""
    others = tuple(name for name in Catalogue().regions if name != REGION)
    read = one_of(others)
    names = reader.texts(path, value)
    for index, name in enumerate(names):
        read(reader, f"{path}[{index}]", name)
        if name in names[:index]:
            reader.fault(f"{path}[{index}]", f"{name!r} stands there twice", "write it once")
    return names


def _expect(reader: Reader, path: str, value: object) -> Mapping[str, str | int]:
    return reader.record(path, value, _EXPECT, required=("outcome", "exit_code")) or {}


def _taken(fields: dict[str, Any], keys: Keys) -> dict[str, Any]:
    """Take the attributes of `keys` out of `fields`."""
    names = {attribute for attribute, _ in keys.values()}
    return {name: fields.pop(name) for name in names & set(fields)}


def _each(read: Callable[[Reader, str, object], Any]) -> Read:
    return lambda reader, path, value: reader.each(path, value, read)


_SECTIONS: Mapping[str, Read] = {
    "name": Reader.text,
    "description": Reader.text,
    "plane": _plane,
    "regions": _regions,
    "stockouts": _each(_stockout),
    "quotas": _each(_quota),
    "calls": _each(_call),
    "lists": _each(_list),
    "events": _each(_event),
    "machines": _each(_machine),
    "strangers": _each(_stranger),
    "cluster": read_cluster,
    "pods": _each(read_pod),
    "clock": _each(_jump),
    "demo": _demo,
    "expect": _expect,
}
