"""A scenario's rules about the fleet list: the ways in which a list over the project can be wrong."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta

from runtender.local.http import Fault, HttpRequest, HttpResponse
from runtender.local.scenario.rules import ListRule
from runtender.local.scenario.turns import Turns

FLEET = "compute.instances.aggregatedList"
# A tick lists the fleet once; this is more than an hour of them.
_KEPT = 100


class FleetLists:
    """Says what a fleet list shows. `silence` makes zones unreachable, `look` answers a request with the truth."""

    def __init__(
        self,
        rules: Sequence[ListRule],
        *,
        elapsed: Callable[[], timedelta],
        silence: Callable[[Sequence[str]], None],
        look: Callable[[HttpRequest], HttpResponse],
    ) -> None:
        self._rules = tuple(rules)
        self._turns = Turns([rule.turn for rule in rules], elapsed)
        self._elapsed = elapsed
        self._silence = silence
        self._look = look
        self._seen: deque[tuple[timedelta, HttpResponse]] = deque(maxlen=_KEPT)

    def fault(self, request: HttpRequest) -> Fault | None:
        """Prepare for one fleet list; returns what it is answered where that is not the truth."""
        active = [rule for index, rule in enumerate(self._rules) if self._turns.take(index)]
        if any(rule.lag for rule in self._rules):
            self._seen.append((self._elapsed(), self._look(request)))
        self._silence([zone for rule in active for zone in rule.missing])
        lag = max((rule.lag for rule in active), default=timedelta())
        return Fault(answer=self._as_of(self._elapsed() - lag)) if lag else None

    def _as_of(self, moment: timedelta) -> HttpResponse:
        """Return the newest list that is no newer than `moment`, or the first that there was."""
        old = [answer for at, answer in self._seen if at <= moment]
        return old[-1] if old else self._seen[0][1]
