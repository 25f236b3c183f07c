"""What a Kubernetes API's refusal means: a table from HTTP status and a Status body's reason to a verdict and its reach.

Kubernetes itself knows nothing of capacity: what has no room is accepted and waits. So a refusal is a fault of the request,
a quota of the namespace, or passing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runtender.capacity.classify import MAX_MESSAGE, Meaning
from runtender.model import Scope, Verdict
from runtender.observed import Refusal
from runtender.ports import ApiAnswer

CLUSTER_NOT_FOUND = "ClusterNotFound"
"""The reason of the Status that stands for a cluster which is not there; Kubernetes has no word for that itself."""
EXCEEDED_QUOTA = "ExceededQuota"
QUOTA_WORDS = "exceeded quota"
"""How Kubernetes says that a ResourceQuota of the namespace is used up, in refusals and in events."""

_FAULT: Meaning = (Verdict.CONFIG_FAULT, Scope.PROJECT)
_AGAIN: Meaning = (Verdict.RETRY, Scope.ZONE)
_RATE: Meaning = (Verdict.RATE_LIMITED, Scope.PROJECT)
_TAKEN: Meaning = (Verdict.ADOPT, Scope.ZONE)
_CEILING: Meaning = (Verdict.HARD_CEILING, Scope.ZONE)
_UNKNOWN: Meaning = (Verdict.TRANSIENT_CAPACITY, Scope.ZONE)

_BY_STATUS: Mapping[int, Meaning] = {
    0: _AGAIN,
    400: _FAULT,
    401: _FAULT,
    403: _FAULT,
    # The namespace, or the cluster: nothing that waiting brings.
    404: _FAULT,
    405: _FAULT,
    408: _AGAIN,
    409: _TAKEN,
    413: _FAULT,
    415: _FAULT,
    422: _FAULT,
    429: _RATE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """A Status body, as far as it says something. `spoken` is false where no Kubernetes API wrote the answer."""

    spoken: bool
    reason: str
    message: str
    retry_after_s: float | None


def status_of(answer: ApiAnswer) -> Status:
    """Read what an answer that is no success says; a proxy's page is its message."""
    body = answer.body if answer.body.get("kind") == "Status" else {}
    details = body.get("details")
    seconds = details.get("retryAfterSeconds") if isinstance(details, Mapping) else None
    return Status(
        spoken=bool(body),
        reason=_text(body.get("reason")),
        message=(_text(body.get("message")) or answer.text or f"HTTP {answer.status}")[:MAX_MESSAGE],
        retry_after_s=float(seconds) if isinstance(seconds, int) and seconds > 0 else answer.retry_after_s,
    )


def classify_status(answer: ApiAnswer) -> Refusal:
    """Classify an error answer to a create. A 404 means that the namespace or the cluster is missing."""
    status = status_of(answer)
    meaning = _meaning(answer.status, status)
    over_quota = meaning == _CEILING
    return Refusal(
        verdict=(meaning or _UNKNOWN)[0],
        scope=(meaning or _UNKNOWN)[1],
        code=EXCEEDED_QUOTA if over_quota else status.reason or str(answer.status),
        message=status.message,
        retry_after_s=status.retry_after_s,
        recognised=meaning is not None,
    )


def _meaning(http_status: int, status: Status) -> Meaning | None:
    if http_status >= 500:
        return _AGAIN
    if http_status == 403 and QUOTA_WORDS in status.message:
        return _CEILING
    if http_status == 404 and not status.spoken and status.message:
        # Somebody on the way does not know the cluster (yet, or any more); Kubernetes was not asked.
        return _AGAIN
    if http_status == 409 and status.reason == "Conflict":
        # Two writers of something else, such as the count of a quota.
        return _AGAIN
    return _BY_STATUS.get(http_status)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
