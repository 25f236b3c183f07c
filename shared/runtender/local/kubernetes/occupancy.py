"""How much of each node its pods take, kept up as pods come and go: asking every pod anew would cost too much."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

from runtender.local.kubernetes.documents import Document, uid_of
from runtender.local.kubernetes.pods import node_of
from runtender.local.kubernetes.quantities import requests_of

_NOTHING = Decimal(0)


class Occupancy:
    """The sums of requests by node."""

    def __init__(self) -> None:
        self._totals: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
        self._placed: dict[str, tuple[str, Mapping[str, Decimal]]] = {}

    def of(self, node: str) -> Mapping[str, Decimal]:
        """Return what a node's pods take."""
        return self._totals[node]

    def note(self, pod: Document, *, gone: bool) -> None:
        """Learn of a pod as it is now. One that is `gone`, or has ended, takes nothing."""
        uid, node = uid_of(pod), node_of(pod)
        if gone:
            placed = self._placed.pop(uid, None)
            if placed is not None:
                self._add(placed[0], placed[1], -1)
        elif node and uid not in self._placed:
            amounts = requests_of(pod["spec"])
            self._placed[uid] = (node, amounts)
            self._add(node, amounts, 1)

    def _add(self, node: str, amounts: Mapping[str, Decimal], sign: int) -> None:
        total = self._totals[node]
        for name, amount in amounts.items():
            total[name] = total.get(name, _NOTHING) + sign * amount
