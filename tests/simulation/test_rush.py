"""A rush of submits under a budget of creates and a limit on what is alive: all settled, in order, within both."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from runtender.client.records import queue_places
from runtender.local.compute.quotas import Quotas
from runtender.local.simulation.cloud import START
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.world import CONFIG, ENVIRONMENT
from runtender.model import Outcome
from runtender.settings import Settings

BUDGET, ALIVE = 200, 20


@pytest.mark.parametrize(
    "runs", [pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(600)]), pytest.param(100)]
)
def test_a_rush_is_worked_off_in_its_order_within_budget_and_limit(a_world, runs):
    settings = Settings.from_env(
        {
            **ENVIRONMENT,
            "SF_API_BUDGET": str(BUDGET),
            "SF_LIMITS": f'[{{"jobs": {ALIVE}}}]',
            # Handlers run one after the other here: none may wait for its operation.
            "SF_PROVISION_WAIT_S": "0",
        }
    )
    quick = Behaviour(boot_s=1, work_s=30)
    world = a_world(settings=settings, behaviour=quick, quotas=Quotas(regional={"N2_CPUS": 10_000}))
    for number in range(runs):
        world.submit({**CONFIG, "run_name": f"run-{number:04d}"})
        world.run(timedelta(seconds=10) / runs)
    waiting = queue_places(world.cloud.documents)
    assert [run_id[:8] for run_id in waiting] == [f"run-{number:04d}" for number in range(ALIVE, runs)]
    assert list(waiting.values()) == list(range(1, runs - ALIVE + 1))

    world.settle()
    assert Counter(job.outcome for job in world.jobs) == {Outcome.SUCCEEDED: runs}
    in_order = sorted(world.jobs, key=lambda job: job.run_id)
    assert [job.admitted_at for job in in_order] == sorted(job.admitted_at for job in world.jobs)
    minutes = Counter(int((at - START) / timedelta(minutes=1)) for at in world.cloud.onlooker.creates)
    assert max(minutes.values()) <= BUDGET
    assert _most_alive(world) == ALIVE


def _most_alive(world):
    begun = [(job.admitted_at, 1) for job in world.jobs]
    moments = sorted(begun + [(job.history[-1].at, -1) for job in world.jobs])
    alive, most = 0, 0
    for _, change in moments:
        alive += change
        most = max(most, alive)
    return most
