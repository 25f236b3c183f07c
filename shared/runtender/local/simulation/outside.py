"""What the parts of a simulated world see of the rest of it."""

from __future__ import annotations

from typing import Protocol

from runtender.local.compute.agenda import Agenda
from runtender.local.http import Fault, HttpRequest
from runtender.local.simulation.clock import SimClock
from runtender.local.simulation.rules import Onlooker
from runtender.local.simulation.storage import Network
from runtender.local.simulation.weather import Weather
from runtender.settings import Settings


class Outside(Network, Protocol):
    """The world around the machines, or around a cluster."""

    settings: Settings
    weather: Weather
    clock: SimClock
    agenda: Agenda
    onlooker: Onlooker
    partial_fleets: set[str]

    def epoch(self) -> int:
        """Return the clock that workers see."""

    def note(self, what: str) -> None:
        """Write a line into the log."""

    def fault(self, method: str, request: HttpRequest, *, by_worker: bool) -> Fault | None:
        """Return what the weather makes of a call."""
