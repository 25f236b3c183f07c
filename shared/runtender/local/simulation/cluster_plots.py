"""The plots of jobs on the standing cluster, to be told like those of `plots`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.documents import name_of, namespace_of
from runtender.local.kubernetes.events import PodStarted
from runtender.local.simulation.clusters import ClusterSetup
from runtender.local.simulation.guests import Behaviour
from runtender.local.simulation.plots import PLOTS, Plot, cancel_all
from runtender.local.simulation.pods import PodBehaviour, PodDeath
from runtender.local.simulation.records import require
from runtender.local.simulation.statuses import UNAVAILABLE
from runtender.local.simulation.weather import (
    BROKEN_OFF,
    CREATE_JOB,
    GET_CLUSTER,
    LIST_JOBS,
    NOT_FOUND,
    Weather,
)
from runtender.local.simulation.world import CLUSTER_CONFIG, CONFIG, World

_ALL = 1000
_QUICK = PodBehaviour(work_s=40)
_AT_IT = PodBehaviour(work_s=900)
# Two workers show what more would: each further one costs time in every telling.
_TWO = ClusterSetup(nodes=2, pods=_QUICK)
_BUSY = replace(_TWO, pods=_AT_IT)
_MIXED = {
    **CONFIG,
    "models": ["theta", "lightgbm"],
    "compute": {"families": {"ml": {"runtime": "gke", "workers": 2}}},
}
_TASK = {
    "name": "chore",
    "image": "us-docker.pkg.dev/p/r/task:1",
    "command": ["true"],
    "runtime": "gke",
    "workers": 2,
}


def with_workers(count: int) -> dict[str, object]:
    """Return the config of a forecast by so many pods."""
    return {**CLUSTER_CONFIG, "compute": {"workers": count}}


_FORECAST = with_workers(2)


def _submit(world: World) -> None:
    world.submit(_FORECAST)


def _submit_twice(world: World) -> None:
    for request_id in ("one", "one", "two"):
        world.submit(_FORECAST, request_id=request_id)


def _submit_task(world: World) -> None:
    world.submit(_TASK, kind="task")


def _submit_after_a_stranger(world: World) -> None:
    """Let somebody have a Job of the name, and that Job end, before the plane hears what became of its create."""
    _submit(world)
    world.run(timedelta(seconds=5))
    for job in world.jobs:
        world.cloud.cluster.people.place_job(job.plan.name, {})


def _index_dies(order: PodStarted) -> PodBehaviour:
    """Let one index end without a word, so that nothing but the plane's word holds back another pod of it."""
    return replace(_QUICK, dies=PodDeath.AT_WORK if order.env["JOB_COMPLETION_INDEX"] == "1" else None)


def _without_image(world: World) -> None:
    world.cloud.cluster.core.miss_image(world.settings.container_image)
    _submit(world)


def _index_fails(order: PodStarted) -> PodBehaviour:
    return replace(_QUICK, exit_code=3 if order.env["JOB_COMPLETION_INDEX"] == "1" else 0)


def _unanswered(weather: Weather) -> None:
    weather.plan(CREATE_JOB, BROKEN_OFF, late=timedelta(seconds=70))


def _unheard(weather: Weather) -> None:
    weather.plan(CREATE_JOB, BROKEN_OFF)


def _unanswered_for_long(weather: Weather) -> None:
    """Let the first try's first create take effect late, and its repeats not at all."""
    weather.plan(CREATE_JOB, BROKEN_OFF, late=timedelta(minutes=14, seconds=30))
    weather.plan(CREATE_JOB, BROKEN_OFF, times=_ALL, matches=_is_first_try)


def _unheard_until_all_is_over(weather: Weather) -> None:
    """Let the first copy of a create take effect when what its repeat made has ended and gone."""
    weather.plan(CREATE_JOB, BROKEN_OFF, late=timedelta(minutes=8))


def _is_first_try(request: HttpRequest) -> bool:
    return bool(request.json()["metadata"]["labels"]["sf-placement"] == "0")


def _delete_jobs(world: World) -> None:
    for job in world.cloud.cluster.jobs():
        world.cloud.cluster.people.delete_job(job)


def _orphan_pods(world: World) -> None:
    for job in world.cloud.cluster.jobs():
        world.cloud.cluster.people.delete_job(job, "Orphan")


def _late_and_unread(weather: Weather) -> None:
    """Let the first Job land when its run is over, and lists of Jobs break off after the first."""
    weather.plan(CREATE_JOB, BROKEN_OFF, late=timedelta(minutes=8))
    weather.jobs_per_page = 1
    weather.plan(LIST_JOBS, UNAVAILABLE, times=_ALL, matches=lambda request: "continue" in request.query)


def _orphan_and_another(world: World) -> None:
    world.submit({**_FORECAST, "run_name": "abandoned"})
    world.run(timedelta(seconds=5))
    cancel_all(world)
    world.submit({**_FORECAST, "run_name": "busy"}, limits={"run": "2h", "capacity_wait": "15m"})


def _see_it_left_alone(world: World) -> None:
    world.run(timedelta(minutes=40))
    names = [name_of(job) for job in world.cloud.cluster.jobs()]
    left_alone = any(name.startswith("sf-abandoned") for name in names)
    require(left_alone, "I9", f"of the Jobs there is only {names} although no list was whole")


def _half_is_done(order: PodStarted) -> PodBehaviour:
    return _QUICK if order.env["JOB_COMPLETION_INDEX"] == "0" else _AT_IT


def _lose_sight(world: World) -> None:
    """Let the GKE API know no cluster for ten seconds, in which a plane that remembers nothing looks after the jobs."""
    world.restart()
    world.weather.plan(GET_CLUSTER, NOT_FOUND, times=_ALL)
    world.cloud.agenda.at(world.now + timedelta(seconds=10), lambda _at: world.weather.plans.clear())
    for job in world.jobs:
        world.publish({"action": "step", "job_key": job.job_key})


def _evict_one(world: World) -> None:
    for pod in world.cloud.cluster.running_pods()[:1]:
        world.cloud.cluster.core.evict(namespace_of(pod), name_of(pod), world.now)


_plot = partial(Plot, begin=_submit)

CROWD = _plot(
    name="forty workers",
    cluster=ClusterSetup(nodes=40, pods=_QUICK),
    begin=lambda world: world.submit(with_workers(40)),
)
MOMENT = _plot(name="a moment in which nobody knows the cluster", cluster=_BUSY, then=_lose_sight)
ORPHAN_JOB = _plot(
    name="a Job that nobody lists, and lists that break off",
    cluster=ClusterSetup(pods=PodBehaviour(work_s=3000)),
    plan=_late_and_unread,
    begin=_orphan_and_another,
    then=_see_it_left_alone,
)
LATE_JOB = _plot(
    name="a Job that lands when it was given up",
    cluster=_TWO,
    plan=_unanswered_for_long,
    begin=lambda world: world.submit(_FORECAST, limits={"run": "20m", "capacity_wait": "40m"}),
    then=lambda world: world.run(timedelta(minutes=22)),
)
LATE_COPY = _plot(
    name="a create of a Job that is sent again, and its first copy lands when the run has failed",
    cluster=replace(_TWO, pods=_index_dies),
    plan=_unheard_until_all_is_over,
)
# These are too long to be told once for each of their points.

CLUSTER_PLOTS: tuple[Plot, ...] = (
    _plot(
        name="four workers",
        cluster=ClusterSetup(nodes=4, pods=_QUICK),
        begin=lambda world: world.submit(with_workers(4)),
    ),
    _plot(name="one worker", cluster=_TWO, begin=lambda world: world.submit(with_workers(1))),
    _plot(name="one of the workers fails", cluster=replace(_TWO, pods=_index_fails)),
    _plot(name="a cancel while pods work", cluster=_BUSY, then=cancel_all),
    _plot(name="a create of a Job without an answer", cluster=_TWO, plan=_unanswered),
    _plot(name="a Job that somebody deletes", cluster=_BUSY, then=_delete_jobs),
    _plot(
        name="a Job that somebody deletes when half of it is done",
        cluster=replace(_TWO, pods=_half_is_done),
        then=_delete_jobs,
    ),
    _plot(name="a Job that somebody deletes, and its pods stay", cluster=_BUSY, then=_orphan_pods),
    _plot(name="pods that never start, for want of their image", cluster=_TWO, begin=_without_image),
    _plot(
        name="a Job of somebody else that has the name, and ends well",
        cluster=_TWO,
        plan=_unheard,
        begin=_submit_after_a_stranger,
    ),
    _plot(name="the same submit to the cluster twice, and again", cluster=_TWO, begin=_submit_twice),
    _plot(
        name="a pod that is evicted", cluster=replace(_TWO, pods=PodBehaviour(work_s=150)), then=_evict_one
    ),
    _plot(name="two pods of a task", cluster=_TWO, begin=_submit_task),
    _plot(
        name="a family on a machine, and one on pods",
        cluster=_TWO,
        behaviour=Behaviour(boot_s=5, work_s=40),
        begin=lambda world: world.submit(_MIXED),
    ),
)
ALL_PLOTS = (*PLOTS, *CLUSTER_PLOTS)
