"""One run of a handler under the simulation's thumb: every call it makes to the world can be its last, or be held.

A handler is killed by an exception that nothing catches, at any point before or after an external call, and frozen there
while the world goes on without it. The calls are found by wrapping the ports, so a new call is met without being named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from runtender.errors import RuntenderError
from runtender.ports import ApiRequest

P = TypeVar("P")
Cross = Callable[["Crossing", Callable[[], Any]], Any]
"""Makes one external call: what is known of it, and the call itself."""

_LOOKS = frozenset({"objects.list", "objects.read", "objects.stat", "store.due", "store.find", "store.get"})


@dataclass(frozen=True, slots=True)
class Crossing:
    """An external call: its name, and whether it only looks."""

    name: str
    looks: bool


class Killed(BaseException):
    """The process that ran the handler is gone. Not an `Exception`: no handler gets to say anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What becomes of an invocation, at which of its points.

    Points are counted from 0: before its first call, after it, before its second ... With `after` set, the point is instead
    the one after the first call of that name. `skew` is how far its clock is off.
    """

    kill_at: int | None = None
    freeze_at: int | None = None
    after: str = ""
    freeze_for: timedelta = timedelta()
    skew: timedelta = timedelta()

    def __str__(self) -> str:
        told = ((field, getattr(self, field.name)) for field in fields(self))
        return ", ".join(f"{field.name} {value}" for field, value in told if value != field.default)

    @property
    def freezes(self) -> bool:
        """True when it is to be frozen, if it gets that far."""
        return bool(self.freeze_for)


class Invocation:
    """A handler's way through its external calls. `calls` names those that it has begun.

    `news` tells of each point that it has reached whether anything, the time too, can be another since the point before.
    `partial_fleets` are the fleet lists of which it was last shown a part.
    """

    def __init__(
        self, kind: str, fate: Fate, freeze: Callable[[timedelta], None], now: Callable[[], datetime]
    ) -> None:
        self.kind = kind
        self.fate = fate
        self.calls: list[str] = []
        self.news: list[bool] = []
        self.partial_fleets: set[str] = set()
        self._freeze = freeze
        self._now = now
        self._reached_at: datetime | None = None
        self._met = False
        self._dead = False

    def die(self) -> None:
        """Let its process be gone: no call is made any more."""
        self._dead = True

    def cross(self, crossing: Crossing, call: Callable[[], Any]) -> Any:
        """Make a call, unless the process dies before it, or is dead and only its clean-up code still runs."""
        if self._dead:
            raise Killed(self.kind)
        point = 2 * len(self.calls)
        self.calls.append(crossing.name)
        self._reach(point, None)
        try:
            result = call()
        except RuntenderError:
            self._reach(point + 1, crossing)
            raise
        self._reach(point + 1, crossing)
        return result

    def _reach(self, point: int, after: Crossing | None) -> None:
        fate = self.fate
        before, self._reached_at = self._reached_at, self._now()
        has_changed = after is not None and not after.looks
        self.news.append(has_changed or before != self._reached_at)
        named = after is not None and after.name == fate.after and not self._met
        self._met = self._met or named
        if point == fate.kill_at or (named and not fate.freezes):
            self.die()
            raise Killed(f"{self.kind} at point {point}, call {self.calls[-1]}")
        if point == fate.freeze_at or (named and fate.freezes):
            self._freeze(fate.freeze_for)


def tapped(port: P, name: str, cross: Cross) -> P:
    """Return the port with every call of its methods led through `cross`."""
    return cast(P, _Tapped(port, name, cross))


class _Tapped:
    def __init__(self, port: object, name: str, cross: Cross) -> None:
        self._port = port
        self._name = name
        self._cross = cross

    def __getattr__(self, method: str) -> Callable[..., Any]:
        target, label = getattr(self._port, method), f"{self._name}.{method}"
        own = Crossing(label, label in _LOOKS)

        def call(*args: Any, **options: Any) -> Any:
            request = args[0] if args and isinstance(args[0], ApiRequest) else None
            about = Crossing(request.method_id, request.verb == "GET") if request else own
            return self._cross(about, lambda: target(*args, **options))

        # Found from now on without coming here.
        setattr(self, method, call)
        return call


class Fiber:
    """Work that can be left in the middle and gone on with later. Of the two sides only one ever runs."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.ended = False
        self._work = work
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._error: BaseException | None = None
        self._abandoned = False
        self._thread: threading.Thread | None = None

    def resume(self) -> None:
        """Let it run until it parks or ends; raises what it raised."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()
        if self.ended:
            self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def park(self) -> None:
        """Called by the work itself: go back to whoever resumed it."""
        self._back.release()
        self._go.acquire()
        if self._abandoned:
            raise Killed("never resumed")

    def abandon(self) -> None:
        """End parked work by killing it."""
        self._abandoned = True
        self.resume()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - handed over to the resuming side, whatever it is
            self._error = error
        self.ended = True
        self._back.release()
