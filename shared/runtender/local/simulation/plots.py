"""Short stories, each without chance, in which crashes and freezes are tried at every point of every handler.

A plot is played once undisturbed to find the points; then again for each of them, with that one thing going wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest

from runtender.local.compute.stock import Stock
from runtender.local.scenario import Shape, Stockout
from runtender.local.simulation.cloud import START
from runtender.local.simulation.clusters import ClusterSetup
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.rules import BrokenRule, require
from runtender.local.simulation.weather import BROKEN_OFF, INSERT, Weather
from runtender.local.simulation.world import CLUSTER_ENVIRONMENT, CONFIG, ENVIRONMENT, World
from runtender.settings import Settings

NO_FATES: Mapping[int, Fate] = {}
_QUICK = Behaviour(boot_s=5, work_s=40)


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a plot: the `invocation`th run of a handler, and a point before or after one of its calls.

    `news` is True unless all is as it was at the handler's point before: it has only looked since, and no time has passed.
    A handler that dies here then leaves what it would have left there.
    """

    invocation: int
    at: int
    news: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Plot:
    """A story and the world it plays in. `begin` opens it, `then` goes on a hundred seconds later.

    `at_death` hears of each handler that is killed.
    """

    name: str
    behaviour: Behaviour = _QUICK
    stockouts: tuple[Stockout, ...] = ()
    self_delete: bool = True
    plan: Callable[[Weather], None] = lambda _weather: None
    begin: Callable[[World], None] = lambda world: world.submit()
    then: Callable[[World], None] = lambda _world: None
    at_death: Callable[[World], None] = lambda _world: None
    cluster: ClusterSetup | None = None

    def play(self, fates: Mapping[int, Fate]) -> World:
        """Tell the story with these fates by invocation; raises `BrokenPlot` with what happened."""
        world = self._world(fates)
        try:
            self.begin(world)
            world.run(timedelta(seconds=100))
            self.then(world)
            world.run(timedelta(minutes=3))
            world.settle()
        except BrokenRule as broken:
            raise BrokenPlot(f"{self.name}, {fates}: {broken}\n{world.story()}") from broken
        finally:
            world.close()
        return world

    def points(self, fates: Mapping[int, Fate] = NO_FATES) -> list[Point]:
        """Return every point of every invocation, as a telling with these fates has them; without any, an undisturbed one."""
        invocations = self.play(fates).invocations
        return [
            Point(number, at, news)
            for number, invocation in enumerate(invocations)
            for at, news in enumerate(invocation.news)
        ]

    def _world(self, fates: Mapping[int, Fate]) -> World:
        weather = _Fated(fates)
        self.plan(weather)
        environment = CLUSTER_ENVIRONMENT if self.cluster else ENVIRONMENT
        world = World(
            settings=Settings.from_env({**environment, "SF_GUEST_SELF_DELETE": str(self.self_delete)}),
            weather=weather,
            behaviour=self.behaviour,
            stock=Stock(self.stockouts, opened_at=START),
            cluster=self.cluster,
        )
        world.at_death = self.at_death
        return world


class BrokenPlot(AssertionError):
    """A rule was broken in a plot."""


class _Fated(Weather):
    """Fair weather in which some invocations have a fate."""

    __slots__ = ("_fated", "_next")

    def __init__(self, fates: Mapping[int, Fate]) -> None:
        super().__init__()
        self._fated = fates
        self._next = -1

    def fate(self, _kind: str) -> Fate:
        self._next += 1
        return self._fated.get(self._next, Fate())


def crashes(points: Iterable[Point]) -> Iterator[Mapping[int, Fate]]:
    """Kill the handler once, at each point that has news."""
    for point in points:
        if point.news:
            yield {point.invocation: Fate(kill_at=point.at)}


def second_crashes(plot: Plot, first: Mapping[int, Fate]) -> Iterator[Mapping[int, Fate]]:
    """Kill a later invocation too, at each such point of the telling in which the `first` was killed."""
    (killed,) = first
    later = (point for point in plot.points(first) if point.invocation > killed)
    for second in crashes(later):
        yield {**first, **second}


def freezes(points: Iterable[Point], span: timedelta) -> Iterator[Mapping[int, Fate]]:
    """Freeze the handler once after each call: it goes on when others have done its work, or in the middle of it."""
    for point in points:
        if point.at % 2:
            yield {point.invocation: Fate(freeze_at=point.at, freeze_for=span)}


def around_changes(points: Iterable[Point]) -> Iterator[Point]:
    """Choose the points after each call that changed something, after the look before it, and after each handler's last.

    A handler that is held before a change goes on to make it when all that it has seen is old.
    """
    after_calls = [point for point in points if point.at % 2]
    for point, then in zip_longest(after_calls, after_calls[1:]):
        if point.news or then is None or then.news or then.invocation != point.invocation:
            yield point


def cancel_all(world: World) -> None:
    """Cancel every run."""
    for run_id in sorted(world.cloud.onlooker.runs):
        world.cancel(run_id)


def _submit_twice(world: World) -> None:
    world.submit(request_id="one")
    world.submit(request_id="one")
    world.submit(request_id="two")


def _unanswered(weather: Weather) -> None:
    weather.plan(INSERT, BROKEN_OFF, late=timedelta(seconds=70))


def _submit_and_cancel(world: World) -> None:
    world.submit()
    world.run(timedelta(seconds=5))
    cancel_all(world)


def _silence_a_zone(world: World) -> None:
    world.cloud.zones.core.silence(["us-east1-b"])
    world.run(timedelta(minutes=35))
    require(bool(world.cloud.machines()), "I9", "the machine is gone although no list was whole")


def _unanswered_for_long(weather: Weather) -> None:
    weather.plan(INSERT, BROKEN_OFF, late=timedelta(minutes=8))


ORPHAN = Plot(
    name="a machine that nobody lists, and a zone that does not answer",
    behaviour=Behaviour(boots=False),
    plan=_unanswered_for_long,
    begin=_submit_and_cancel,
    then=_silence_a_zone,
)
SAME_PLACE = Plot(
    name="the only place with room is the one that failed at first",
    behaviour=Behaviour(work_s=400),
    stockouts=(
        Stockout(zone="us-central1-a", first=1, shape=Shape.LATE),
        *(Stockout(zone=f"us-central1-{letter}", shape=Shape.HTTP) for letter in "bcf"),
    ),
)
# These two are too long to be told once for each of their points.

PLOTS: tuple[Plot, ...] = (
    Plot(name="a good end"),
    Plot(name="the same submit twice, and again", begin=_submit_twice),
    Plot(name="two families", begin=lambda world: world.submit({**CONFIG, "models": ["theta", "lightgbm"]})),
    Plot(name="the second place has room", stockouts=(Stockout(placement=0),)),
    Plot(name="the first machine stops at once", stockouts=(Stockout(placement=0, shape=Shape.LATE),)),
    Plot(name="a create without an answer", plan=_unanswered),
    Plot(name="a cancel while it works", behaviour=Behaviour(work_s=900), then=cancel_all),
    Plot(name="a machine that does not remove itself", self_delete=False),
    Plot(name="a machine that never speaks", behaviour=Behaviour(boots=False)),
)
