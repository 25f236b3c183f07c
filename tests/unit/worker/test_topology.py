"""Ranks, shares and ranges: the rows of the acceptance table, and what must hold for any numbers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.worker.topology import (
    Source,
    Topology,
    TopologyError,
    build_worker_series_range,
    effective_worker_count,
    is_model_sharded,
    panel_models,
    partition_models_for_worker,
    resolve_topology,
    slice_bounds,
)

TEN_IDS = [f"S{number:02d}" for number in range(10)]
TWO_LOCAL = ("theta", "autoets")
TWO_PANEL = ("tide", "tsmixer")
PANEL = frozenset(TWO_PANEL)


def cluster_spec(pool: str, index: int, **pools: list[str]) -> str:
    cluster = pools or {"workerpool1": ["b", "c"], "workerpool0": ["a"]}
    return json.dumps({"cluster": cluster, "task": {"type": pool, "index": index}})


@pytest.mark.parametrize(
    ("rank", "count", "environ", "expected"),
    [
        pytest.param(None, None, {}, (0, 1, "single"), id="acceptance-E1"),
        pytest.param(
            1, 4, {"SF_WORKER_RANK": "0", "SF_WORKER_COUNT": "9"}, (1, 4, "cli"), id="acceptance-E2"
        ),
        pytest.param(
            None, None, {"SF_WORKER_RANK": "2", "SF_WORKER_COUNT": "4"}, (2, 4, "env"), id="acceptance-E3"
        ),
        pytest.param(
            None,
            None,
            {"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETION_TOTAL": "3"},
            (1, 3, "k8s_indexed_job"),
            id="acceptance-E4",
        ),
        pytest.param(
            None, None, {"JOB_COMPLETION_INDEX": "2"}, (2, 3, "k8s_indexed_job"), id="acceptance-E5"
        ),
        pytest.param(
            None,
            None,
            {"CLUSTER_SPEC": cluster_spec("workerpool1", 1)},
            (2, 3, "vertex_cluster_spec"),
            id="acceptance-E6-second-pool",
        ),
        pytest.param(
            None,
            None,
            {"CLUSTER_SPEC": cluster_spec("workerpool0", 0)},
            (0, 3, "vertex_cluster_spec"),
            id="acceptance-E6-first-pool",
        ),
        pytest.param(None, 4, {}, (0, 4, "cli"), id="a missing rank is 0"),
        pytest.param(0, None, {}, (0, 1, "cli"), id="a missing count is 1"),
        pytest.param(
            None, None, {"SF_WORKER_RANK": "2"}, (2, 3, "env"), id="a lone rank counts up to itself"
        ),
        pytest.param(
            None, None, {"SF_WORKER_COUNT": "3"}, (0, 3, "env"), id="a lone count is seen by rank 0"
        ),
        pytest.param(None, None, {"SF_WORKER_RANK": " "}, (0, 1, "single"), id="a blank variable is none"),
        pytest.param(
            None,
            None,
            {"JOB_COMPLETION_INDEX": "2", "SF_WORKER_COUNT": "5"},
            (2, 5, "k8s_indexed_job"),
            id="beside an index a lone count is the job's total",
        ),
        pytest.param(
            None,
            None,
            {"CLUSTER_SPEC": cluster_spec("worker", 1, other=["x"], worker=["a", "b"], chief=["c"])},
            (2, 4, "vertex_cluster_spec"),
            id="named pools have a fixed order, unknown ones come last",
        ),
        pytest.param(
            None,
            None,
            {"CLUSTER_SPEC": cluster_spec("workerpool10", 0, workerpool10=["x"], workerpool2=["a", "b"])},
            (2, 3, "vertex_cluster_spec"),
            id="numbered pools go by number",
        ),
    ],
)
def test_the_most_explicit_source_tells_a_workers_place(rank, count, environ, expected):
    topology = resolve_topology(rank, count, environ)

    assert (topology.rank, topology.world_size, topology.source) == expected


@pytest.mark.parametrize(
    ("rank", "count", "environ", "words"),
    [
        pytest.param(None, None, {"SF_WORKER_RANK": "two"}, "SF_WORKER_RANK is 'two'", id="acceptance-E7"),
        pytest.param(None, None, {"JOB_COMPLETION_INDEX": "x"}, "JOB_COMPLETION_INDEX", id="index no number"),
        pytest.param(4, 4, {}, "out of bounds", id="rank beyond the count"),
        pytest.param(-1, 4, {}, "out of bounds", id="negative rank"),
        pytest.param(0, 0, {}, "out of bounds", id="no workers"),
    ],
)
def test_a_place_that_makes_no_sense_is_an_error(rank, count, environ, words):
    with pytest.raises(TopologyError, match=words):
        resolve_topology(rank, count, environ)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"cluster": {}}', id="no task"),
        pytest.param(cluster_spec("gone", 0), id="a pool that is not there"),
    ],
)
def test_an_unreadable_cluster_spec_is_warned_about_and_passed_over(spec):
    with pytest.warns(UserWarning, match="CLUSTER_SPEC is ignored"):
        assert resolve_topology(None, None, {"CLUSTER_SPEC": spec}) == Topology()


@pytest.mark.parametrize(
    ("models", "requested", "options", "expected"),
    [
        pytest.param(TWO_LOCAL, 4, {}, 4, id="acceptance-E8"),
        pytest.param(TWO_LOCAL, 4, {"n_series": 3}, 3, id="acceptance-E9"),
        pytest.param(TWO_LOCAL, 4, {"n_series": 1}, 2, id="acceptance-E10"),
        pytest.param(TWO_PANEL, 1, {"panel": PANEL}, 2, id="acceptance-E11-asked-1"),
        pytest.param(TWO_PANEL, 4, {"panel": PANEL}, 2, id="acceptance-E11-asked-4"),
        pytest.param(TWO_LOCAL, 4, {"hierarchy": True}, 2, id="acceptance-E12"),
        pytest.param((), 5, {}, 1, id="acceptance-E13"),
        pytest.param(TWO_LOCAL, 0, {}, 1, id="asked for none"),
        pytest.param(TWO_LOCAL, 1, {"hierarchy": True}, 1, id="a hierarchy of quick models stays on one"),
        pytest.param(TWO_PANEL, 1, {}, 2, id="deep learning gets a worker per model"),
        pytest.param(("tide",), 4, {}, 4, id="one local deep learning model is divided by series"),
        pytest.param(("tide",), 4, {"panel": PANEL}, 1, id="one panel model cannot be divided"),
    ],
)
def test_no_more_workers_than_have_something_to_do(models, requested, options, expected):
    assert effective_worker_count(models, requested, **options) == expected


def test_no_models_are_not_sharded():
    assert not is_model_sharded((), hierarchy=True)


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        pytest.param(0, ("tide",), id="acceptance-E14-rank-0"),
        pytest.param(1, ("tsmixer",), id="acceptance-E14-rank-1"),
        pytest.param(2, (), id="acceptance-E14-rank-2"),
        pytest.param(3, (), id="acceptance-E14-rank-3"),
    ],
)
def test_panel_models_are_dealt_out(rank, expected):
    topology = Topology(rank=rank, world_size=4, source=Source.ENV)

    assert partition_models_for_worker(TWO_PANEL, topology, panel=PANEL) == expected


@pytest.mark.parametrize(
    "world_size", [pytest.param(size, id=f"acceptance-E15-of-{size}") for size in (1, 2, 5)]
)
def test_local_models_run_on_every_rank(world_size):
    for rank in range(world_size):
        topology = Topology(rank=rank, world_size=world_size)
        assert partition_models_for_worker(TWO_LOCAL, topology) == TWO_LOCAL


def test_in_a_mix_only_the_panel_models_are_dealt_out():
    models = ("tide", "theta", "tsmixer")
    shares = [
        partition_models_for_worker(models, Topology(rank=rank, world_size=3), panel=PANEL)
        for rank in range(3)
    ]

    assert shares == [("tide", "theta"), ("theta", "tsmixer"), ("theta",)]


@pytest.mark.parametrize(
    ("training_modes", "expected"),
    [
        pytest.param({"tide": "local"}, set(), id="local is no panel model"),
        pytest.param({"tide": "global", "theta": "global"}, {"tide"}, id="global: deep learning only"),
        pytest.param(
            {"tide": "hybrid", "neuralprophet": "hybrid"}, {"neuralprophet"}, id="hybrid: one model only"
        ),
    ],
)
def test_the_training_mode_makes_a_panel_model(training_modes, expected):
    assert panel_models(training_modes) == expected


def test_slices_follow_the_sorted_names():
    """acceptance-E16."""
    shares = [
        build_worker_series_range(reversed(TEN_IDS), None, "ts_id", Topology(rank=rank, world_size=3)).ids
        for rank in range(3)
    ]

    assert [sorted(share) for share in shares] == [TEN_IDS[:3], TEN_IDS[3:6], TEN_IDS[6:]]


@pytest.mark.parametrize(
    ("n", "world_size", "expected"),
    [
        pytest.param(7, 3, [(0, 2), (2, 4), (4, 7)], id="acceptance-E17-7-of-3"),
        pytest.param(5, 2, [(0, 2), (2, 5)], id="acceptance-E17-5-of-2"),
        pytest.param(2, 4, [(0, 0), (0, 1), (1, 1), (1, 2)], id="acceptance-E18"),
    ],
)
def test_slice_bounds(n, world_size, expected):
    assert [
        slice_bounds(n, Topology(rank=rank, world_size=world_size)) for rank in range(world_size)
    ] == expected


@pytest.mark.parametrize(
    ("ids", "limit", "rank", "world_size", "sample", "restriction", "total"),
    [
        pytest.param(TEN_IDS, None, 0, 3, 0, "ts_id >= 'S00' AND ts_id <= 'S02'", 10, id="acceptance-E19"),
        pytest.param(TEN_IDS, 10, 0, 1, 0, None, 10, id="acceptance-E20-limit-of-all"),
        pytest.param(TEN_IDS, 4, 0, 1, 0, "ts_id <= 'S03'", 4, id="acceptance-E20-limit-cuts"),
        pytest.param(
            ["O'Brien", "Z"],
            None,
            0,
            2,
            0,
            r"ts_id >= 'O\'Brien' AND ts_id <= 'O\'Brien'",
            2,
            id="acceptance-E21",
        ),
        pytest.param(["a\\b"], None, 0, 1, 0, None, 1, id="one worker reads all"),
        pytest.param(
            ["a\\", "b"], None, 0, 2, 0, r"ts_id >= 'a\\' AND ts_id <= 'a\\'", 2, id="a backslash is escaped"
        ),
        pytest.param(
            TEN_IDS,
            None,
            1,
            2,
            3,
            "(ts_id >= 'S05' AND ts_id <= 'S09') OR ts_id <= 'S02'",
            10,
            id="a later rank also reads the tuning sample",
        ),
        pytest.param(
            TEN_IDS,
            None,
            0,
            2,
            3,
            "ts_id >= 'S00' AND ts_id <= 'S04'",
            10,
            id="the first rank has the sample",
        ),
        pytest.param(["a"], None, 0, 2, 0, None, 1, id="an empty slice restricts nothing"),
        pytest.param([], 5, 0, 1, 0, None, 0, id="no series"),
    ],
)
def test_the_restriction_reads_what_the_rank_needs(ids, limit, rank, world_size, sample, restriction, total):
    topology = Topology(rank=rank, world_size=world_size)

    found = build_worker_series_range(ids, limit, "ts_id", topology, sample)

    assert (found.restriction, found.total) == (restriction, total)


def test_a_limit_counts_distinct_names_as_text():
    found = build_worker_series_range([10, 9, "9", 10], 1, "ts_id", Topology())

    assert (set(found.ids), found.total, found.restriction) == ({"10"}, 1, "ts_id <= '10'")


@given(n=st.integers(0, 500), world_size=st.integers(1, 40))
def test_every_series_has_exactly_one_rank(n, world_size):
    bounds = [slice_bounds(n, Topology(rank=rank, world_size=world_size)) for rank in range(world_size)]

    assert [place for start, end in bounds for place in range(start, end)] == list(range(n))
