"""A handler may die before or after any call it makes, or be held there for minutes; the rules hold all the same.

The points are found by playing each plot once; nobody lists them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import chain, cycle
from random import Random

import pytest

from runtender.local.http import HttpRequest
from runtender.local.simulation.cloud import WAREHOUSE
from runtender.local.simulation.cluster_plots import (
    ALL_PLOTS,
    CLUSTER_PLOTS,
    CROWD,
    LATE_COPY,
    LATE_JOB,
    MOMENT,
)
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.plots import (
    PLOTS,
    SAME_PLACE,
    Point,
    around_changes,
    crashes,
    freezes,
    second_crashes,
)
from runtender.local.simulation.weather import GET
from runtender.runtimes.gke_job import METHODS as CLUSTER_METHODS

# Every run lets each handler die wherever that makes a difference, and holds it around each change for one of the spans.
# `make proofs` holds it after every call, for each span. Of the pairs of deaths some are drawn by chance;
# `make simulate PAIRS=all` plays each.
FIRSTS_PER_PLOT, SECONDS_PER_FIRST = 3, 4
FATES_PER_LONG_PLOT = 24
# Shorter than a hold on a row, a little longer, and longer than an event waits for its handler.
SPANS = tuple(timedelta(seconds=seconds) for seconds in (45, 130, 700))

INSTANCE_METHODS = [
    f"compute.instances.{verb}"
    for verb in ("aggregatedList", "delete", "get", "getSerialPortOutput", "insert")
]
BUCKETS = ("code", WAREHOUSE)
COLLECTIONS = ("admission", "blocks", "budget", "claims", "clusters", "jobs", "orphans", "requests", "runs")

every_plot = pytest.mark.parametrize("plot", [pytest.param(plot, id=plot.name) for plot in ALL_PLOTS])
every_long_plot = pytest.mark.parametrize(
    "plot", [pytest.param(plot, id=plot.name) for plot in (CROWD, MOMENT, LATE_JOB, LATE_COPY)]
)


def tell_all(plot, fates: Iterable[Mapping[int, Fate]]) -> None:
    for fate in fates:
        plot.play(fate)


def freezes_of_all_spans(points) -> Iterable[Mapping[int, Fate]]:
    return chain.from_iterable(freezes(points, span) for span in SPANS)


def freezes_of_spans_in_turn(points) -> Iterable[Mapping[int, Fate]]:
    for point, span in zip(points, cycle(SPANS), strict=False):
        yield from freezes([point], span)


@every_plot
def test_a_handler_may_die_before_and_after_every_call(plot):
    tell_all(plot, crashes(plot.points()))


@every_plot
def test_two_handlers_of_one_story_may_die(plot):
    chance = Random(plot.name)
    for first in chance.sample(list(crashes(plot.points())), FIRSTS_PER_PLOT):
        seconds = list(second_crashes(plot, first))
        tell_all(plot, chance.sample(seconds, min(len(seconds), SECONDS_PER_FIRST)))


@every_plot
def test_a_handler_may_go_on_after_others_have_done_its_work(plot):
    tell_all(plot, freezes_of_spans_in_turn(around_changes(plot.points())))


@pytest.mark.slow
@pytest.mark.timeout(900)
@every_plot
def test_a_handler_may_be_held_at_every_call_for_every_span(plot):
    tell_all(plot, freezes_of_all_spans(plot.points()))


@every_long_plot
def test_a_handler_of_a_long_story_may_die_or_be_held(plot):
    points = plot.points()
    fates = [*crashes(points), *freezes_of_spans_in_turn(around_changes(points))]
    tell_all(plot, Random(plot.name).sample(fates, FATES_PER_LONG_PLOT))


@pytest.mark.slow
@pytest.mark.timeout(900)
@every_long_plot
def test_a_handler_of_a_long_story_may_die_before_and_after_every_call(plot):
    tell_all(plot, crashes(plot.points()))


def test_a_delete_that_is_held_for_minutes_hits_no_later_machine_of_its_name():
    calls = [invocation.calls for invocation in SAME_PLACE.play({}).invocations]
    looked = [point for point in SAME_PLACE.points() if calls[point.invocation][point.at // 2] == GET]
    tell_all(SAME_PLACE, freezes(looked, timedelta(seconds=250)))


@pytest.mark.parametrize("plots", [PLOTS, CLUSTER_PLOTS], ids=["machines", "clusters"])
def test_who_dies_after_a_look_leaves_what_it_would_have_left_before_it(plots):
    looks = defaultdict(list)
    for plot in plots:
        for number, invocation in enumerate(plot.play({}).invocations):
            for at in range(1, len(invocation.news), 2):
                if not invocation.news[at]:
                    before, after = (Point(number, point, news=False) for point in (at - 1, at))
                    looks[invocation.calls[at // 2]].append((plot, before, after))
    assert len(looks) > 10
    for name, found in looks.items():
        for plot, before, after in Random(name).sample(found, min(len(found), 2)):
            assert left_by(plot, before) == left_by(plot, after), name


def left_by(plot, point):
    """Return what is there at the moment of a handler's death."""
    left = []
    witnessed = replace(plot, at_death=lambda world: left.append(what_is_there(world)))
    witnessed.play({point.invocation: Fate(kill_at=point.at)})
    (there,) = left
    return there


def what_is_there(world):
    cloud = world.cloud
    documents = [found for collection in COLLECTIONS for found in cloud.documents.find(collection)]
    objects = [
        cloud.objects.apply(HttpRequest(method="GET", path=f"/storage/v1/b/{bucket}/o"), world.now).body
        for bucket in BUCKETS
    ]
    return world.now, documents, objects, cloud.topics.counts(), repr(cloud.machines()), cloud.leftovers()


@pytest.mark.parametrize(
    ("plots", "services", "methods"),
    [
        pytest.param(PLOTS, "compute.instances.", set(INSTANCE_METHODS), id="machines"),
        pytest.param(
            (*CLUSTER_PLOTS, LATE_JOB), ("kubernetes.", "container."), set(CLUSTER_METHODS), id="clusters"
        ),
    ],
)
def test_the_points_reach_every_handler_and_every_kind_of_call(plots, services, methods):
    invocations = [invocation for plot in plots for invocation in plot.play({}).invocations]
    calls = {call for invocation in invocations for call in invocation.calls}
    assert {invocation.kind for invocation in invocations} == {"sf-submit", "sf-marker", "sf-tick"}
    assert calls >= {"objects.create", "store.commit", "topics.publish"}
    assert {call for call in calls if call.startswith(services)} == methods
