"""Handlers of jobs on a cluster may die before or after any call they make, or be held there; the rules hold all the same.

The points are found by playing each plot once, as those of the plots of machines are. These plots take longer: of their
pairs fewer are drawn, each freeze has one of the spans, and of the longest plots only some points are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from random import Random

import pytest

from runtender.local.simulation.cluster_plots import CLUSTER_PLOTS, CROWD, LATE_JOB, MOMENT
from runtender.local.simulation.invocations import Fate
from runtender.local.simulation.plots import crashes, freezes, pairs_of_crashes
from runtender.runtimes.gke_job import METHODS

PAIRS_PER_PLOT = 20
POINTS_PER_LONG_PLOT = 40
# A test tells a part of a plot's points: no test is to take long, however busy its computer is.
SHARES = 3
# Shorter than a hold on a row, a little longer, and longer than an event waits for its handler.
SPANS = (45, 130, 700)

# Of the others every run tries a third of the points, and `make proofs` all of them.
TOLD_WHOLE = ("one of the workers fails", "a create of a Job without an answer")

every_plot = pytest.mark.parametrize("plot", [pytest.param(plot, id=plot.name) for plot in CLUSTER_PLOTS])
every_share = pytest.mark.parametrize(
    ("plot", "share"),
    [
        pytest.param(
            plot,
            share,
            id=f"{plot.name}-{share}",
            marks=() if share == 0 or plot.name in TOLD_WHOLE else pytest.mark.slow,
        )
        for plot in CLUSTER_PLOTS
        for share in range(SHARES)
    ],
)


def freezes_of_all_lengths(points) -> list[Mapping[int, Fate]]:
    """Freeze the handler after each call, for each of the spans in turn."""
    by_span = [list(freezes(points, timedelta(seconds=seconds))) for seconds in SPANS]
    return [by_span[number % len(SPANS)][number] for number in range(len(by_span[0]))]


def tell_all(plot, fates: Iterable[Mapping[int, Fate]]) -> None:
    for fate in fates:
        plot.play(fate)


@every_share
def test_a_handler_may_die_before_and_after_every_call(plot, share):
    tell_all(plot, crashes(plot.points()[share::SHARES]))


@every_plot
def test_two_handlers_of_one_story_may_die(plot):
    pairs = list(pairs_of_crashes(plot.points()))
    tell_all(plot, Random(plot.name).sample(pairs, PAIRS_PER_PLOT))


@every_plot
def test_a_handler_may_go_on_after_others_have_done_its_work(plot):
    tell_all(plot, freezes_of_all_lengths(plot.points()))


@pytest.mark.parametrize("plot", [pytest.param(plot, id=plot.name) for plot in (CROWD, MOMENT, LATE_JOB)])
def test_a_handler_of_a_long_story_may_die_or_be_held(plot):
    points = plot.points()
    fates = [*crashes(points), *freezes_of_all_lengths(points)]
    tell_all(plot, Random(plot.name).sample(fates, POINTS_PER_LONG_PLOT))


def test_the_points_reach_every_handler_and_every_call_to_a_cluster():
    calls = {
        (invocation.kind, call)
        for plot in (*CLUSTER_PLOTS, LATE_JOB)
        for invocation in plot.play({}).invocations
        for call in invocation.calls
    }
    assert {kind for kind, _ in calls} == {"sf-submit", "sf-marker", "sf-tick"}
    to_clusters = {call for _, call in calls if call.startswith(("kubernetes.", "container."))}
    assert to_clusters == set(METHODS)
