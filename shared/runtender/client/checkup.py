"""A look at the whole plane from outside: is everything there, does it work, and what should somebody see to.

Each check is on its own; one that cannot be made says so and stops no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from runtender.capacity.classify import was_guessed
from runtender.client.dead_letters import DeadLetterBox
from runtender.client.world import World
from runtender.engine.clusters import MayNotLook, read_clusters
from runtender.errors import Rejected, RuntenderError
from runtender.forecast.gke_run import ClusterName
from runtender.model import CleanupState
from runtender.wire.documents import job_from_document

# Google refuses signed calls from a clock that is minutes off; half a minute is no accident any more.
_CLOCK_TOLERANCE = timedelta(seconds=30)
_MISSED_TICKS = 3
# A local cloud ticks many times faster than a busy machine may answer.
_LEAST_OVERDUE = timedelta(seconds=30)
_RECENT_SIGHTINGS = timedelta(days=1)
_MOST_JOBS = 200
_MOST_SHOWN = 5


class Level(StrEnum):
    """How grave a finding is. A NOTE is worth knowing; a PROBLEM keeps runs from starting or ending."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a check has found, and what to do about it."""

    check: str
    level: Level
    what: str
    remedy: str = ""


Check = Callable[[World], Iterator[Finding]]


def examine(world: World) -> Iterator[Finding]:
    """Make all checks, one finding or more from each."""
    for check, look in _CHECKS.items():
        try:
            findings = list(look(world))
        except RuntenderError as error:
            yield Finding(check=check, level=Level.PROBLEM, what=str(error), remedy=_UNREACHABLE)
            if check == _FIRST:
                # All that follow in the store would say the same.
                return
        else:
            yield from findings or [Finding(check=check, level=Level.OK, what=_FINE[check])]


_UNREACHABLE = "see that it exists, that this network reaches it, and that you may read it"


def _store(world: World) -> Iterator[Finding]:
    world.store.find("runs", limit=1)
    yield from ()


def _buckets(world: World) -> Iterator[Finding]:
    settings = world.settings
    cells = settings.cells_prefix.removeprefix("gs://").partition("/")[0]
    for bucket in dict.fromkeys((settings.code_bucket, settings.status_bucket, cells)):
        try:
            world.objects.list(bucket, "runs/", limit=1)
        except RuntenderError as error:
            yield Finding(check="buckets", level=Level.PROBLEM, what=str(error), remedy=_UNREACHABLE)


def _topics(world: World) -> Iterator[Finding]:
    settings = world.settings
    topics = {
        "SF_SUBMIT_TOPIC": settings.submit_topic,
        "SF_TICK_TOPIC": settings.tick_topic,
        "SF_MARKER_TOPIC": settings.marker_topic,
        "SF_DEAD_LETTER_TOPIC": settings.dead_letter_topic,
        "SF_NOTIFY_TOPIC": settings.notify_topic,
    }
    for variable, topic in topics.items():
        if not world.subscriptions.has_topic(topic):
            yield Finding(
                check="topics",
                level=Level.PROBLEM,
                what=f"there is no topic {topic} in project {settings.project}",
                remedy=f"create it, or name the right one by {variable}",
            )


def _cluster(world: World) -> Iterator[Finding]:
    name, api = world.settings.gke_cluster, world.clusters
    if not name or api is None:
        return
    try:
        read_clusters(world.settings, api, [ClusterName.parse(name)])
    except MayNotLook as error:
        yield Finding(
            check="cluster",
            level=Level.NOTE,
            what=f"{name} was not looked at: {_problems(error)}",
            remedy="ask for the right to look at it, or see what on_submit logs",
        )
    except Rejected as error:
        yield Finding(
            check="cluster",
            level=Level.PROBLEM,
            what=_problems(error),
            remedy="mend it, or correct SF_GKE_CLUSTER",
        )


def _clock(world: World) -> Iterator[Finding]:
    theirs = world.server_time()
    if theirs is None:
        yield Finding(check="clock", level=Level.NOTE, what="no server told the time to compare with")
        return
    ahead = world.clock.now() - theirs
    if abs(ahead) > _CLOCK_TOLERANCE:
        yield Finding(
            check="clock",
            level=Level.PROBLEM,
            what=f"this machine's clock is {abs(ahead).total_seconds():.0f} s {'ahead' if ahead > timedelta() else 'behind'}",
            remedy="let it be set over the network (NTP)",
        )


def _overdue(world: World) -> Iterator[Finding]:
    late = max(_MISSED_TICKS * world.settings.timing.tick, _LEAST_OVERDUE)
    overdue = world.store.due(world.clock.now() - late, _MOST_JOBS)
    if overdue:
        tick = world.settings.tick_topic
        yield Finding(
            check="ticks",
            level=Level.PROBLEM,
            what=f"not looked at although long due: {_some(overdue)}",
            remedy=f"see that the scheduler publishes to {tick}, and what on_tick logs",
        )


def _stuck(world: World) -> Iterator[Finding]:
    state = CleanupState.STUCK.value
    for found in world.store.find("jobs", where={"cleanup.state": state}, limit=_MOST_JOBS):
        job = job_from_document(found.data)
        left = ", ".join(f"{row.kind} {row.name} in {row.location}" for row in job.live)
        yield Finding(
            check="cleanups",
            level=Level.PROBLEM,
            what=f"{job.job_key}: {left or 'something'} cannot be removed: {job.cleanup.reason}",
            remedy="mend what the reason names, or remove it by hand; the plane goes on trying",
        )


def _orphans(world: World) -> Iterator[Finding]:
    since = world.clock.now() - _RECENT_SIGHTINGS
    for found in world.store.find("orphans", order_by="seen_at", descending=True, limit=_MOST_JOBS):
        if found.data["seen_at"] < since:
            return
        name, location = found.data["name"], found.data["location"]
        yield Finding(
            check="orphans",
            level=Level.NOTE,
            what=f"{name} in {location} was seen although no job lists it any more",
            remedy="it is deleted after the orphan grace; if it is still there in an hour, see what on_tick logs",
        )


def _refusals(world: World) -> Iterator[Finding]:
    guessed: dict[str, list[str]] = {}
    for found in world.store.find("jobs", order_by="accepted_at", descending=True, limit=_MOST_JOBS):
        for entry in job_from_document(found.data).walk.ledger:
            if was_guessed(entry.verdict, entry.code, entry.message):
                guessed.setdefault(entry.code, []).append(entry.message)
    for code, messages in guessed.items():
        yield Finding(
            check="refusals",
            level=Level.NOTE,
            what=f"{code} is not known, and was taken for a stock-out {len(messages)} times: {messages[0][:300]}",
            remedy="if it is none, report it, so that it gets a line in runtender's table of answers",
        )


def _dead_letters(world: World) -> Iterator[Finding]:
    with DeadLetterBox(world) as box:
        waiting = len(box.letters)
    if waiting:
        yield Finding(
            check="dead letters",
            level=Level.NOTE,
            what=f"{waiting} wait for somebody",
            remedy="'runtender dead-letters list' shows them",
        )


def _problems(rejected: Rejected) -> str:
    """Say what is wrong, without the field of a config: it is a setting that is meant."""
    return "; ".join(fault.problem for fault in rejected.faults)


def _some(names: list[str]) -> str:
    more = len(names) - _MOST_SHOWN
    return ", ".join(names[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


_FIRST = "store"
_CHECKS: Mapping[str, Check] = {
    _FIRST: _store,
    "buckets": _buckets,
    "topics": _topics,
    "cluster": _cluster,
    "clock": _clock,
    "ticks": _overdue,
    "cleanups": _stuck,
    "orphans": _orphans,
    "refusals": _refusals,
    "dead letters": _dead_letters,
}
_FINE: Mapping[str, str] = {
    _FIRST: "answers",
    "buckets": "are there and can be listed",
    "topics": "are there",
    "cluster": "the plane's own is there, or none is set",
    "clock": "agrees with the server's",
    "ticks": "every job that is due has been looked at",
    "cleanups": "nothing is stuck",
    "orphans": "no machine without a job in the last day",
    "refusals": "every refusal was understood",
    "dead letters": "none wait",
}
