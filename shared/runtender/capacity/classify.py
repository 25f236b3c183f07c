"""What an API's refusal means: one table from HTTP status and structured code to a verdict and its reach.

A structured code says most, then what the message names (a machine type that the zone does not have is no
fault of the request), then the HTTP status. Words decide only where none of these do: an address in a message
is not a permission problem, and a rate limit is not a ceiling, however alike the sentences look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.model import Scope, Verdict
from runtender.observed import Refusal
from runtender.ports import ApiAnswer

MAX_MESSAGE = 2000
"""Characters kept of the API's own words."""

Meaning = tuple[Verdict, Scope]

_STOCK_OUT: Meaning = (Verdict.TRANSIENT_CAPACITY, Scope.ZONE)
_NOT_IN_ZONE: Meaning = (Verdict.HARD_CEILING, Scope.ZONE)
_NOT_IN_REGION: Meaning = (Verdict.HARD_CEILING, Scope.REGION)
_NOT_IN_PROJECT: Meaning = (Verdict.HARD_CEILING, Scope.PROJECT)
_FAULT: Meaning = (Verdict.CONFIG_FAULT, Scope.PROJECT)
_RATE: Meaning = (Verdict.RATE_LIMITED, Scope.PROJECT)
_AGAIN: Meaning = (Verdict.RETRY, Scope.ZONE)

# Codes are compared in lower case without underscores, because Google writes one and the same code in several
# ways: `quotaExceeded` in an HTTP error, `QUOTA_EXCEEDED` in an operation.
_BY_CODE: Mapping[str, Meaning] = {
    "zoneresourcepoolexhausted": _STOCK_OUT,
    "zoneresourcepoolexhaustedwithdetails": _STOCK_OUT,
    "insufficientcapacity": _STOCK_OUT,
    "gcestockout": _STOCK_OUT,
    "stockout": _STOCK_OUT,
    "quotaexceeded": _NOT_IN_REGION,
    "gcequotaexceeded": _NOT_IN_REGION,
    "ratelimitexceeded": _RATE,
    "userratelimitexceeded": _RATE,
    "concurrentoperationsquotaexceeded": _RATE,
    "resourcenotready": _AGAIN,
    "resourceoperationrateexceeded": _AGAIN,
    "operationrateexceeded": _AGAIN,
    "resourceinusebyanotherresource": _AGAIN,
    "permissionserror": _FAULT,
    "permissiondenied": _FAULT,
    "accessnotconfigured": _FAULT,
    "servicedisabled": _FAULT,
    "billingdisabled": _FAULT,
}
KNOWN_CODES = frozenset(_BY_CODE)
"""All codes that have a meaning of their own, in lower case without underscores."""

_ZONE_LACKS = (
    r"(machine|accelerator|disk)types?/|does not exist in zone|unknown zone|/zones/[a-z0-9-]+'? was not found"
)
_REGION_LACKS = r"(subnetwork|network ?attachment).*(cannot be found|not found|does not exist)"
_PLACE_FORBIDDEN = r"constraints/gcp\.resourceLocations"
_ORGANISATION_FORBIDS = r"constraints/[a-z]+\.[a-z]+|organization'?s policy"
_NOT_YET = r"currently creating|incompatible operation|operation rate"

# What a message names, looked at only where the status allows for it. First match wins.
_BY_NAME: tuple[tuple[frozenset[int], re.Pattern[str], Meaning], ...] = (
    # A policy of the organisation comes as any of these, most often as a 412. Waiting does not change it.
    (frozenset({400, 403, 404, 412}), re.compile(_PLACE_FORBIDDEN, re.I), _NOT_IN_REGION),
    (frozenset({400, 403, 404, 412}), re.compile(_ORGANISATION_FORBIDS, re.I), _FAULT),
    (frozenset({400, 404}), re.compile(_ZONE_LACKS, re.I), _NOT_IN_ZONE),
    (frozenset({400, 404}), re.compile(_REGION_LACKS, re.I), _NOT_IN_REGION),
    (frozenset({404}), re.compile(r"images?/|service account", re.I), _FAULT),
    (frozenset({400}), re.compile(_NOT_YET, re.I), _AGAIN),
)

_BY_STATUS: Mapping[int, Meaning] = {
    400: _FAULT,
    401: _FAULT,
    403: _FAULT,
    # What is missing is not known, only that it is missing here.
    404: _NOT_IN_ZONE,
    408: _AGAIN,
    409: (Verdict.ADOPT, Scope.ZONE),
    412: _AGAIN,
}
# Our own delete overtook the insert: what the operation was to make is not there.
_TAKEN_IN_OPERATION: Meaning = (Verdict.GONE, Scope.ZONE)
_TAKEN_CODES = frozenset({"alreadyexists", "resourcealreadyexists"})
# What the plane itself concluded, without an API's word.
_OUR_CODES = frozenset({"UNANSWERED", "STOPPED_AT_ONCE"})
# Quotas that count over all regions: no other region helps.
_PROJECT_QUOTA = re.compile(r"_ALL_REGIONS|-ALL-REGIONS", re.I)

_ADDRESS = re.compile(r"\S+@\S+")
_STOCK_OUT_WORDS = (
    "resources are insufficient in region", "does not have enough resources", "insufficient resources",
    "resource exhausted", "resource pool exhausted", "zone_resource_pool_exhausted", "out of resources",
    "try a different", "capacity",
)  # fmt: skip
_FAULT_WORDS = (
    "permission denied", "permission_denied", "does not have permission", "not authorized", "unauthorized",
    "iam", "service account", "invalid argument", "invalid_argument", "machine type",
    "unsupported accelerator", "has not been used in project", "api is not enabled", "billing",
    "no longer supported", "can no longer be used to create new clusters",
)  # fmt: skip
_MISSING_WORDS = ("was not found", "not found", "notfound", "does not exist")
_BY_EXCEPTION: Mapping[str, Meaning] = {
    "InvalidArgument": _FAULT,
    "PermissionDenied": _FAULT,
    "Unauthenticated": _FAULT,
    "BadRequest": _FAULT,
    "Forbidden": _FAULT,
    "NotFound": _NOT_IN_ZONE,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """What an error body says, wherever Google put it. Codes in order of trust."""

    codes: tuple[str, ...]
    message: str
    quota: str = ""
    zones: tuple[str, ...] = ()


def classify_http(answer: ApiAnswer) -> Refusal:
    """Classify an error answer to a create. A 404 here means that something the request names is missing."""
    told = _http_error(answer)
    # Too many requests speak of quota, limits and exceeding too; only the status tells them from a ceiling.
    meaning = _RATE if answer.status == 429 else _by_code(told) or _by_name(told, answer.status)
    meaning = meaning or _BY_STATUS.get(answer.status)
    if meaning is None and (answer.status == 0 or answer.status >= 500):
        meaning = _AGAIN
    return _refusal(told, meaning, fallback=str(answer.status), retry_after_s=answer.retry_after_s)


def classify_operation(operation: Mapping[str, Any]) -> Refusal:
    """Classify the `error` of a finished Compute Engine operation."""
    told = _operation_error(operation)
    status = _whole(operation.get("httpErrorStatusCode"))
    if any(_folded(code) in _TAKEN_CODES for code in told.codes):
        return _refusal(told, _TAKEN_IN_OPERATION, fallback="409")
    # Operations repeat a lookup's 404 as a code and leave out the status.
    meaning = _by_code(told) or _by_name(told, status or 404) or _BY_STATUS.get(status)
    return _refusal(told, meaning, fallback=str(status or "operation"))


def classify_text(message: str, exception_name: str = "") -> Verdict:
    """Classify by words alone, for errors that bring neither a status nor a code.

    None of the plane's own calls ends so; a client library's exception does, hence its name.
    """
    return _by_words(message, exception_name)[0][0]


def was_guessed(verdict: Verdict, code: str, message: str) -> bool:
    """True for a refusal in a ledger that was taken for a stock-out for want of anything known about it."""
    if verdict is not Verdict.TRANSIENT_CAPACITY or _folded(code) in _BY_CODE or code in _OUR_CODES:
        return False
    return not _by_words(message, "")[1]


def _refusal(
    told: _Told, meaning: Meaning | None, *, fallback: str, retry_after_s: float | None = None
) -> Refusal:
    known = True
    if meaning is None:
        meaning, known = _by_words(told.message, "")
    return Refusal(
        verdict=meaning[0],
        scope=meaning[1],
        code=_deciding_code(told) or fallback,
        message=told.message[:MAX_MESSAGE],
        retry_after_s=retry_after_s,
        zones_available=told.zones,
        recognised=known,
    )


def _by_code(told: _Told) -> Meaning | None:
    for code in told.codes:
        meaning = _BY_CODE.get(_folded(code))
        if meaning == _NOT_IN_REGION and _PROJECT_QUOTA.search(f"{told.quota} {told.message}"):
            return _NOT_IN_PROJECT
        if meaning is not None:
            return meaning
    return None


def _deciding_code(told: _Told) -> str:
    known = (code for code in told.codes if _folded(code) in _BY_CODE)
    return next(known, told.codes[0] if told.codes else "")


def _by_name(told: _Told, status: int) -> Meaning | None:
    for statuses, pattern, meaning in _BY_NAME:
        if status in statuses and pattern.search(told.message):
            return meaning
    return None


def _by_words(message: str, exception_name: str) -> tuple[Meaning, bool]:
    """Read the message; the flag is false when nothing in it was recognised."""
    # `iam` must not be found in the domain of every service account.
    text = _ADDRESS.sub(" ", message).lower()
    meaning: Meaning | None = None
    if exception_name in {"ServiceUnavailable", "ResourceExhausted"} or _has(text, _STOCK_OUT_WORDS):
        meaning = _STOCK_OUT
    elif "quota" in text and _has(text, ("exceed", "limit")):
        meaning = _NOT_IN_REGION
    elif _has(text, _FAULT_WORDS):
        meaning = _FAULT
    elif _has(text, ("networkattachments", "network attachment")) and _has(text, _MISSING_WORDS):
        meaning = _NOT_IN_REGION
    else:
        meaning = _BY_EXCEPTION.get(exception_name)
    return (_STOCK_OUT, False) if meaning is None else (meaning, True)


def _has(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _http_error(answer: ApiAnswer) -> _Told:
    """Take `{"error": {message, status, errors[].reason, details[].reason}}` apart; parts may be missing."""
    error = _mapping(answer.body.get("error"))
    details = [_mapping(detail) for detail in _items(error.get("details"))]
    infos = [_mapping(detail.get("metadata") or detail.get("metadatas")) for detail in details]
    reasons = [detail.get("reason") for detail in details]
    reasons += [_mapping(entry).get("reason") for entry in _items(error.get("errors"))]
    return _Told(
        codes=_texts([*reasons, error.get("status")]),
        message=str(error.get("message") or answer.text or f"HTTP {answer.status}"),
        quota=_quota_names(infos),
        zones=_zones(infos),
    )


def _operation_error(operation: Mapping[str, Any]) -> _Told:
    """Take `{"error": {"errors": [{code, message, errorDetails[]}]}}` apart."""
    errors = [_mapping(entry) for entry in _items(_mapping(operation.get("error")).get("errors"))]
    details = [_mapping(detail) for entry in errors for detail in _items(entry.get("errorDetails"))]
    infos = [_mapping(detail.get("errorInfo")) for detail in details]
    said = "; ".join(": ".join(_texts([entry.get("code"), entry.get("message")])) for entry in errors)
    return _Told(
        codes=_texts([entry.get("code") for entry in errors] + [info.get("reason") for info in infos]),
        message=said or str(operation.get("httpErrorMessage") or "the operation failed and did not say why"),
        quota=_quota_names(_mapping(detail.get("quotaInfo")) for detail in details),
        zones=_zones(_mapping(info.get("metadatas")) for info in infos),
    )


def _quota_names(infos: Iterable[Mapping[str, Any]]) -> str:
    keys = ("limitName", "metricName", "quota_limit", "quota_metric")
    return " ".join(_texts(info.get(key) for info in infos for key in keys))


def _zones(metadata: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the zones that a stock-out itself recommends, in its order."""
    listed = " ".join(str(entry.get("zonesAvailable") or "") for entry in metadata)
    return tuple(dict.fromkeys(re.findall(r"[a-z]+-[a-z]+[0-9]+-[a-z]\b", listed)))


def _folded(code: str) -> str:
    return code.replace("_", "").lower()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _texts(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str) and value)


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
