"""A handler may die before or after any call it makes, or be held there for minutes; the rules hold all the same.

The points are found by playing each plot once; nobody lists them.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from runtender.local.simulation.plots import PLOTS, SAME_PLACE, crashes, freezes, pairs_of_crashes
from runtender.local.simulation.weather import GET

PAIRS_PER_PLOT = 60
# Shorter than a hold on a row, a little longer, and longer than an event waits for its handler.
SPANS = (45, 130, 700)

every_plot = pytest.mark.parametrize("plot", [pytest.param(plot, id=plot.name) for plot in PLOTS])


@every_plot
def test_a_handler_may_die_before_and_after_every_call(plot):
    for fates in crashes(plot.points()):
        plot.play(fates)


@every_plot
def test_two_handlers_of_one_story_may_die(plot):
    pairs = list(pairs_of_crashes(plot.points()))
    for fates in Random(plot.name).sample(pairs, PAIRS_PER_PLOT):
        plot.play(fates)


@every_plot
@pytest.mark.parametrize("seconds", SPANS)
def test_a_handler_may_go_on_after_others_have_done_its_work(plot, seconds):
    for fates in freezes(plot.points(), timedelta(seconds=seconds)):
        plot.play(fates)


def test_a_delete_that_is_held_for_minutes_hits_no_later_machine_of_its_name():
    calls = [invocation.calls for invocation in SAME_PLACE.play({}).invocations]
    looked = [point for point in SAME_PLACE.points() if calls[point.invocation][point.at // 2] == GET]
    for fates in freezes(looked, timedelta(seconds=250)):
        SAME_PLACE.play(fates)


def test_the_points_reach_every_handler_and_every_kind_of_call():
    calls = {
        (invocation.kind, call)
        for plot in PLOTS
        for invocation in plot.play({}).invocations
        for call in invocation.calls
    }
    assert {kind for kind, _ in calls} == {"sf-submit", "sf-marker", "sf-tick"}
    assert {call for _, call in calls} >= {
        "compute.instances.delete",
        "compute.instances.insert",
        "objects.create",
        "store.commit",
        "topics.publish",
    }
