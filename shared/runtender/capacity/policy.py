"""How patiently each service looks for capacity, and how long it waits between passes over its placements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from runtender.errors import Fault, Rejected
from runtender.model import WalkPolicy

_LONGEST_WAIT = timedelta(days=1)
"""Where a policy has no cap of its own: nobody means to wait longer between two passes."""

# Doubling further changes nothing below any cap, and a power without bound would overflow.
_MOST_DOUBLINGS = 32


def _policy(attempts: int, wall_s: int, backoff_s: int, backoff_max_s: int) -> WalkPolicy:
    return WalkPolicy(
        max_attempts=attempts,
        max_wall=timedelta(seconds=wall_s),
        backoff=timedelta(seconds=backoff_s),
        backoff_max=timedelta(seconds=backoff_max_s),
    )


POLICIES: Mapping[str, WalkPolicy] = {
    "ray": _policy(6, 3600, 120, 600),
    "vertex": _policy(6, 3600, 60, 600),
    "gce": _policy(8, 2700, 45, 300),
    "gke": _policy(8, 2700, 45, 300),
    "dataproc_cluster": _policy(8, 2700, 60, 300),
    "dataproc_serverless": _policy(10, 1800, 30, 120),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Term:
    """One field of an override: where it goes, what it becomes, and its least value."""

    name: str
    read: Callable[[float], float | int | timedelta]
    least: float = 0


def _span(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


_TERMS: Mapping[str, _Term] = {
    "max_attempts": _Term(name="max_attempts", read=int),
    "max_wall_seconds": _Term(name="max_wall", read=_span),
    "max_passes": _Term(name="max_passes", read=int),
    "backoff_seconds": _Term(name="backoff", read=_span),
    "backoff_multiplier": _Term(name="backoff_multiplier", read=float, least=1),
    "backoff_max_seconds": _Term(name="backoff_max", read=_span),
}


def policy_for(
    service: str, override: Mapping[str, float | int | None] | None = None, *, enabled: bool = True
) -> WalkPolicy:
    """Return a service's policy with every field of `override` that is not null laid over it.

    With capacity switched off (`enabled` false) one pass over the placements is all. Raises KeyError for a
    service that has no placements to walk, `Rejected` for an unknown field, a negative bound, or a multiplier
    below 1.
    """
    policy = POLICIES[service]
    given = {name: value for name, value in (override or {}).items() if value is not None}
    faults = [fault for name, value in given.items() if (fault := _fault(service, name, value))]
    if faults:
        raise Rejected(faults)
    # 0 passes in an override is no override: it would undo the switch below.
    terms = {name: value for name, value in given.items() if name != "max_passes" or value}
    if not enabled:
        terms["max_passes"] = 1
    # The table pairs each field's name with the type it is read as.
    changes = {_TERMS[name].name: _TERMS[name].read(value) for name, value in terms.items()}
    return replace(policy, **changes)  # type: ignore[arg-type]


def _fault(service: str, name: str, value: float) -> Fault | None:
    field = f"compute.capacity.{service}.{name}"
    term = _TERMS.get(name)
    if term is None:
        return Fault(field=field, problem="is not known", remedy=f"use one of {', '.join(_TERMS)}")
    if value < term.least:
        return Fault(field=field, problem=f"is {value}", remedy=f"write {term.least:g} or more")
    return None


def backoff(policy: WalkPolicy, passes: int) -> timedelta:
    """Return the wait after `passes` full passes: base x multiplier^(passes - 1), capped; none before one."""
    if passes < 1:
        return timedelta()
    cap = policy.backoff_max or _LONGEST_WAIT
    factor = policy.backoff_multiplier ** min(passes - 1, _MOST_DOUBLINGS)
    return timedelta(seconds=min(policy.backoff.total_seconds() * factor, cap.total_seconds()))
