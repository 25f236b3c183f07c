"""What the simulated Compute Engine does to the world: the events that a runner of machines, or a simulation, acts on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class StopReason(StrEnum):
    """Why a machine goes down."""

    DELETED = "deleted"
    PREEMPTED = "preempted"
    EXPIRED = "expired"
    HOST_ERROR = "host_error"
    NO_CAPACITY = "no_capacity"
    POWERED_OFF = "powered_off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Booted:
    """A machine is up: its startup script is to run. `boot` counts from 1; a second boot finds the same disk."""

    instance_id: str
    project: str
    zone: str
    name: str
    boot: int
    metadata: Mapping[str, str]
    service_account: str | None
    gpus: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopping:
    """A machine is told to go down and has `grace` left. Whoever runs it reports when it is off.

    A grace of zero is no warning: the power goes at once.
    """

    instance_id: str
    reason: StopReason
    grace: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Halted:
    """The power is off: whatever still runs on the machine ends now."""

    instance_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Removed:
    """The machine and its boot disk are gone for good."""

    instance_id: str


Event = Booted | Stopping | Halted | Removed
