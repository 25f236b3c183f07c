"""Which inserts find no machine: a scenario's stock-outs, applied to the inserts as they come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from runtender.local.compute.instances import Order
from runtender.local.scenario import Shape, Stockout


@dataclass(frozen=True, kw_only=True, slots=True)
class Shortage:
    """How an insert is to fail, and which zones are recommended instead."""

    shape: Shape
    zones_available: tuple[str, ...] = ()


class Stock:
    """Decides each insert once. Times of a scenario count from `opened_at` and are divided by `scale`."""

    def __init__(
        self, stockouts: Sequence[Stockout] = (), *, opened_at: datetime, scale: float = 1.0
    ) -> None:
        self._stockouts = tuple(stockouts)
        self._opened_at = opened_at
        self._scale = scale
        self._hits: Counter[int] = Counter()

    def shortage(self, order: Order, now: datetime) -> Shortage | None:
        """Return how this insert fails; None when there is a machine for it."""
        elapsed = (now - self._opened_at) * self._scale
        for index, stockout in enumerate(self._stockouts):
            if self._applies(index, stockout, order, elapsed):
                self._hits[index] += 1
                return Shortage(shape=stockout.shape, zones_available=stockout.zones_available)
        return None

    def _applies(self, index: int, stockout: Stockout, order: Order, elapsed: timedelta) -> bool:
        if stockout.first is not None and self._hits[index] >= stockout.first:
            return False
        if elapsed < stockout.after or (stockout.until is not None and elapsed >= stockout.until):
            return False
        rules = (
            (stockout.zone, order.zone),
            (stockout.region, order.region),
            (stockout.placement, order.labels.get("sf-placement")),
            (stockout.attempt, order.labels.get("sf-attempt")),
        )
        return all(rule is None or str(rule) == fact for rule, fact in rules)
