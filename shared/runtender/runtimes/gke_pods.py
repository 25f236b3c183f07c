"""What pods say of themselves: which ran and how they ended, and what keeps the others from starting.

A pod that waits looks like one that works to everybody who counts only phases. Its reason stands in three places: on its
container, on its `PodScheduled` condition, and in events about it or about the Job that could not make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from runtender.capacity.kubernetes import QUOTA_WORDS
from runtender.model import Resource
from runtender.observed import PodSeen, PodsSeen, Trouble, TroubleKind
from runtender.redaction import redacted
from runtender.runtimes.gke_answers import Body, items, moment, part, text
from runtender.runtimes.gke_body import CONTAINER

# Kubernetes' words for what keeps a pod from starting: its container's waiting reason, its scheduling condition's reason,
# or an event's. A word that is not here is no trouble (`ContainerCreating`), or one that another word tells better
# (`BackOff`).
_KIND_BY_REASON: Mapping[str, TroubleKind] = {
    "ErrImagePull": TroubleKind.IMAGE_PULL,
    "ImagePullBackOff": TroubleKind.IMAGE_PULL,
    "InvalidImageName": TroubleKind.IMAGE_PULL,
    "ErrImageNeverPull": TroubleKind.IMAGE_PULL,
    "RegistryUnavailable": TroubleKind.IMAGE_PULL,
    "ImageInspectError": TroubleKind.IMAGE_PULL,
    "SignatureValidationFailed": TroubleKind.IMAGE_PULL,
    "CreateContainerConfigError": TroubleKind.CONFIG,
    "CreateContainerError": TroubleKind.CONFIG,
    "RunContainerError": TroubleKind.CONFIG,
    "FailedMount": TroubleKind.MOUNT,
    "FailedAttachVolume": TroubleKind.MOUNT,
    "FailedCreatePodSandBox": TroubleKind.MOUNT,
    "Unschedulable": TroubleKind.UNSCHEDULABLE,
    "SchedulingGated": TroubleKind.UNSCHEDULABLE,
    "FailedScheduling": TroubleKind.UNSCHEDULABLE,
    "FailedScaleUp": TroubleKind.UNSCHEDULABLE,
}
# What mends least by itself comes first.
_BY_GRAVITY = (
    TroubleKind.CONFIG,
    TroubleKind.IMAGE_PULL,
    TroubleKind.QUOTA,
    TroubleKind.MOUNT,
    TroubleKind.UNSCHEDULABLE,
)
_MOST_WORDS = 500
_FAILED_CREATE = "FailedCreate"
_OUT_OF_MEMORY = "OOMKilled"
_INDEX = "batch.kubernetes.io/job-completion-index"
_FINISHED = frozenset({"Succeeded", "Failed"})


def read_pods(row: Resource, pods: Sequence[Body], warnings: Sequence[Body]) -> PodsSeen:
    """Read a row's pods, with the warning events of its namespace, of which only those about the row's own things count."""
    about = _by_subject(warnings)
    troubles = [trouble for pod in pods for trouble in _troubles(pod, about)]
    troubles += _unmade(row, pods, about)
    return PodsSeen(
        pods=tuple(_pod(pod) for pod in pods),
        scheduled_at=_first(_scheduled_at(pod) for pod in pods),
        started_at=_first(_started_at(pod) for pod in pods),
        trouble=min(troubles, key=lambda one: (_BY_GRAVITY.index(one.kind), one.since), default=None),
    )


def _pod(pod: Body) -> PodSeen:
    about, status, ended = part(pod, "metadata"), part(pod, "status"), _ended(pod)
    index = text(part(about, "annotations"), _INDEX) or text(part(about, "labels"), _INDEX)
    code = ended.get("exitCode")
    disruption = _condition(pod, "DisruptionTarget")
    return PodSeen(
        name=text(about, "name"),
        uid=text(about, "uid"),
        phase=text(status, "phase"),
        index=int(index) if index.isascii() and index.isdigit() else None,
        exit_code=code if isinstance(code, int) else None,
        out_of_memory=text(ended, "reason") == _OUT_OF_MEMORY,
        # The pod's own word (`Evicted`, `DeadlineExceeded`) says more than its container's `Error`.
        reason=text(status, "reason") or text(ended, "reason"),
        disrupted=text(disruption, "status") == "True",
    )


def _troubles(pod: Body, about: Mapping[str, Sequence[Body]]) -> Iterator[Trouble]:
    """Yield what keeps one pod from starting; nothing for a pod that has started, has ended or is going."""
    own, status = part(pod, "metadata"), part(pod, "status")
    if text(status, "phase") in _FINISHED or _started_at(pod) or "deletionTimestamp" in own:
        return
    events = about.get(text(own, "uid"), ())
    born, scheduled = moment(own, "creationTimestamp"), _scheduled_at(pod)
    if scheduled is not None:
        waiting = part(part(_container(pod), "state"), "waiting")
        yield from _told([waiting, *events], scheduled, but=TroubleKind.UNSCHEDULABLE)
    elif born is not None:
        # The autoscaler's events know why no node came; the condition only that none is there.
        yield from _told([*events, _condition(pod, "PodScheduled")], born, only=TroubleKind.UNSCHEDULABLE)


def _told(
    said: Iterable[Body], since: datetime, *, only: TroubleKind | None = None, but: TroubleKind | None = None
) -> Iterator[Trouble]:
    for one in said:
        kind = _KIND_BY_REASON.get(text(one, "reason"))
        if kind is None or kind is but or only not in {None, kind}:
            continue
        yield Trouble(
            kind=kind,
            reason=text(one, "reason"),
            message=redacted(text(one, "message")[:_MOST_WORDS]),
            since=since,
        )


def _unmade(row: Resource, pods: Sequence[Body], about: Mapping[str, Sequence[Body]]) -> Iterator[Trouble]:
    """Yield why the Job's controller could not make a pod, unless it has made one since."""
    made = [moment(part(pod, "metadata"), "creationTimestamp") for pod in pods]
    newest = max((at for at in made if at is not None), default=None)
    for event in about.get(row.uid or row.target_id or "", ()):
        first, last = _said_first(event), _said_last(event)
        if text(event, "reason") != _FAILED_CREATE or first is None or last is None:
            continue
        if newest is not None and newest > last:
            continue
        words = text(event, "message")
        kind = TroubleKind.QUOTA if QUOTA_WORDS in words else TroubleKind.CONFIG
        yield Trouble(kind=kind, reason=_FAILED_CREATE, message=redacted(words[:_MOST_WORDS]), since=first)


def _by_subject(warnings: Sequence[Body]) -> Mapping[str, list[Body]]:
    """Sort events by the uid of what they are about: a name may have been somebody else's a while ago."""
    about: dict[str, list[Body]] = {}
    for event in warnings:
        about.setdefault(text(part(event, "involvedObject"), "uid"), []).append(event)
    about.pop("", None)
    return about


def _said_first(event: Body) -> datetime | None:
    return moment(event, "firstTimestamp") or moment(event, "eventTime")


def _said_last(event: Body) -> datetime | None:
    newest = moment(part(event, "series"), "lastObservedTime") or moment(event, "lastTimestamp")
    return newest or _said_first(event)


def _scheduled_at(pod: Body) -> datetime | None:
    scheduled = _condition(pod, "PodScheduled")
    return moment(scheduled, "lastTransitionTime") if text(scheduled, "status") == "True" else None


def _started_at(pod: Body) -> datetime | None:
    state = part(_container(pod), "state")
    return moment(part(state, "running"), "startedAt") or moment(part(state, "terminated"), "startedAt")


def _ended(pod: Body) -> Body:
    return part(part(_container(pod), "state"), "terminated")


def _container(pod: Body) -> Body:
    listed = items(part(pod, "status"), "containerStatuses")
    return next((one for one in listed if one.get("name") == CONTAINER), {})


def _condition(pod: Body, kind: str) -> Body:
    listed = items(part(pod, "status"), "conditions")
    return next((one for one in listed if one.get("type") == kind), {})


def _first(moments: Iterable[datetime | None]) -> datetime | None:
    return min((at for at in moments if at is not None), default=None)
