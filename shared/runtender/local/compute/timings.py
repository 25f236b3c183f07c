"""How long things take in the simulated Compute Engine, in one place, so that all of it can be scaled alike."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """Spans of a machine's life. The defaults are what one sees on Google Cloud on an ordinary day.

    `refuse` is how long an insert looks alive before a stock-out ends it. `spot_grace` and `grace` are what a machine
    has to shut down in; `shortest_run` is the least `maxRunDuration` that is taken; `request_memory` is how long a
    `requestId` is known.
    """

    provision: timedelta = timedelta(seconds=4)
    stage: timedelta = timedelta(seconds=8)
    refuse: timedelta = timedelta(seconds=6)
    remove: timedelta = timedelta(seconds=6)
    spot_grace: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=120)
    shortest_run: timedelta = timedelta(seconds=30)
    request_memory: timedelta = timedelta(minutes=30)

    def scaled(self, scale: float) -> Timings:
        """Return every span divided by `scale`."""
        return Timings(**{field.name: getattr(self, field.name) / scale for field in fields(self)})
