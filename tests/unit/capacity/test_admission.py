"""Who is let in under which limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtender.capacity.admission import broken_alone, choose, is_full, queue_moment
from runtender.model import Deadlines, Job, JobPlan, LiveLimit

T0 = datetime(2026, 1, 1, tzinfo=UTC)
RED, BLUE = {"team": "red"}, {"team": "blue"}


def a_job(name="j", vcpus=8, gpus=0, labels=None):
    plan = JobPlan(
        runtime="gce",
        name=name,
        machine_type="n2-standard-8",
        vcpus=vcpus,
        accelerator_count=gpus,
        labels=labels or {},
        image_uri="i",
        status_bucket="b",
        placements=(),
        capacity_wait=timedelta(1),
        run_limit=timedelta(1),
        max_run_duration=timedelta(1),
    )
    return Job(
        job_key=name,
        key=name,
        run_id="r",
        family="task",
        attempt=1,
        runtime="gce",
        plan=plan,
        deadlines=Deadlines(capacity=T0),
        accepted_at=T0,
        wake_at=T0,
    )


def team(name, **most):
    return LiveLimit(label=("team", name), **most)


def let_in(limits, live, waiting):
    return [job.job_key for job in choose(limits, live, waiting).jobs]


@pytest.mark.parametrize(
    ("limits", "live", "waiting", "chosen"),
    [
        pytest.param([], [], [a_job("1"), a_job("2")], ["1", "2"], id="no limit"),
        pytest.param([LiveLimit(jobs=1)], [], [a_job("1"), a_job("2")], ["1"], id="so many jobs"),
        pytest.param([LiveLimit(jobs=1)], [a_job()], [a_job("1")], [], id="none beside those alive"),
        pytest.param([LiveLimit(vcpus=20)], [a_job()], [a_job("1"), a_job("2")], ["1"], id="so many vCPUs"),
        pytest.param(
            [LiveLimit(gpus=4)],
            [a_job(gpus=2)],
            [a_job("1", gpus=2), a_job("2", gpus=1), a_job("3")],
            ["1"],
            id="so many GPUs",
        ),
        pytest.param(
            [LiveLimit(vcpus=64)],
            [a_job(vcpus=8)],
            [a_job("large", vcpus=60), a_job("small", vcpus=1)],
            [],
            id="a small one does not slip past a large one",
        ),
        pytest.param(
            [LiveLimit(jobs=9), team("red", jobs=1)],
            [a_job(labels=RED)],
            [a_job("1", labels=RED), a_job("2", labels=BLUE), a_job("3", labels=RED), a_job("4")],
            ["2", "4"],
            id="a label's queue holds up nobody else",
        ),
        pytest.param(
            [LiveLimit(jobs=2), team("red", jobs=1)],
            [],
            [a_job("1", labels=RED), a_job("2", labels=RED), a_job("3", labels=BLUE), a_job("4")],
            ["1", "3"],
            id="the plane's limit holds for all",
        ),
        pytest.param(
            [LiveLimit(vcpus=16)],
            [],
            [a_job("never", vcpus=32), a_job("1")],
            ["1"],
            id="one that can never begin blocks nobody",
        ),
    ],
)
def test_the_queue_is_let_in_as_far_as_the_limits_go(limits, live, waiting, chosen):
    assert let_in(limits, live, waiting) == chosen


def test_no_more_of_the_queue_is_looked_at_than_has_to_be():
    looked: list[str] = []

    def queue():
        for number in range(1000):
            looked.append(str(number))
            yield a_job(str(number))

    choice = choose([LiveLimit(jobs=3)], [], queue())
    assert (len(choice.jobs), choice.closed, len(looked)) == (3, True, 5)


JOBS = st.lists(
    st.tuples(st.sampled_from([1, 8, 30]), st.sampled_from([0, 1, 4]), st.sampled_from([RED, BLUE]))
)
LIMITS = st.lists(
    st.builds(
        LiveLimit,
        label=st.sampled_from([None, ("team", "red"), ("team", "blue")]),
        jobs=st.none() | st.integers(0, 5),
        vcpus=st.none() | st.integers(0, 64),
        gpus=st.none() | st.integers(0, 8),
    ),
    max_size=3,
)


@given(limits=LIMITS, jobs=JOBS)
def test_whoever_waits_no_limit_is_broken_and_none_is_idle(limits, jobs):
    waiting = [
        a_job(str(i), vcpus=cpus, gpus=gpus, labels=labels) for i, (cpus, gpus, labels) in enumerate(jobs)
    ]
    chosen = choose(limits, [], waiting).jobs
    for limit in limits:
        under = [job.plan for job in chosen if limit.label is None or limit.label in job.plan.labels.items()]
        assert limit.jobs is None or len(under) <= limit.jobs
        assert limit.vcpus is None or sum(plan.vcpus for plan in under) <= limit.vcpus
        assert limit.gpus is None or sum(plan.accelerator_count for plan in under) <= limit.gpus
    possible = [job for job in waiting if broken_alone(limits, job.plan) is None]
    assert bool(chosen) == bool(possible), "the first who can ever begin does"


def test_priority_is_worth_waiting_time_and_so_nobody_waits_for_ever():
    early, late = queue_moment(T0, 0), queue_moment(T0 + timedelta(minutes=25), 2)
    assert early < late
    assert queue_moment(T0 + timedelta(minutes=15), 2) < early


def test_a_plane_is_full_by_its_number_of_jobs():
    assert is_full([LiveLimit(jobs=1)], [a_job()])
    assert not is_full([LiveLimit(jobs=2), team("red", jobs=1)], [a_job(labels=RED)])
