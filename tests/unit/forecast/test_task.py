"""Plain tasks: one container, planned without a word about forecasts."""

from __future__ import annotations

import pytest

from runtender.errors import Rejected
from runtender.forecast.task import TaskConfig, parse_task, plan_task, task_run_id
from runtender.model import SubmitKind, WalkPolicy

TASK = {"name": "Nightly export", "image": "busybox:1", "command": ["sh", "-c"], "args": ["true"]}


@pytest.fixture
def plan(a_request, a_plane, zones):
    """Plan a task; `request` and `variables` change the message and the plane, other arguments the task."""

    def build(*, request=None, variables=None, attempt=1, **task):
        return plan_task(
            parse_task({**TASK, **task}),
            a_request(kind=SubmitKind.TASK, **{"image": None, **(request or {})}),
            a_plane(**(variables or {})),
            placements=zones,
            walk=WalkPolicy(),
            attempt=attempt,
        )

    return build


def test_a_task_runs_its_command_on_a_machine_of_its_own(plan):
    change = {"env": {"MODE": "full"}, "machine_type": "e2-standard-4"}
    run_id = task_run_id(parse_task({**TASK, **change}))
    planned = plan(**change)
    assert planned.kind is SubmitKind.TASK
    assert planned.name == f"sf-{run_id}-task-a1"
    assert (planned.image_uri, planned.command, planned.args) == ("busybox:1", ("sh", "-c"), ("true",))
    assert (planned.env, planned.machine_type, planned.slot_cores) == ({"MODE": "full"}, "e2-standard-4", 4)
    assert (planned.models, planned.driver_args, planned.package_uri, planned.source_table) == (
        (),
        (),
        "",
        "",
    )


def test_a_task_needs_only_a_name_and_an_image(plan, a_plane):
    assert parse_task({"name": "n"}) == TaskConfig(name="n")
    assert plan(image=None, variables={"SF_CONTAINER_IMAGE": "alpine:3"}).image_uri == "alpine:3"


def test_a_tasks_gpu_is_planned_like_any(plan):
    planned = plan(hardware="gpu", gpu_type="t4", accelerator_count=4)
    assert (planned.machine_type, planned.accelerator_type) == ("n1-standard-16", "nvidia-tesla-t4")


def test_equal_tasks_are_one_run_and_other_arguments_another():
    first = task_run_id(parse_task(TASK))
    assert first == task_run_id(parse_task(dict(reversed(TASK.items()))))
    assert first == task_run_id(parse_task({**TASK, "workers": 1}))
    assert first != task_run_id(parse_task({**TASK, "args": ["false"]}))
    assert first.startswith("nightly-export-")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        pytest.param({"name": ""}, "name", id="no name"),
        pytest.param({"command": "sh"}, "command", id="a command in one text"),
        pytest.param({"args": [1]}, "args", id="an argument that is no text"),
        pytest.param({"args": ["a\x00b"]}, "args", id="an argument that would end early"),
        pytest.param({"env": {"A": 1}}, "env.A", id="a value that is no text"),
        pytest.param({"env": {"A-B": "1"}}, "env.A-B", id="no name of a variable"),
        pytest.param({"env": {"SF_NONCE": "1"}}, "env.SF_NONCE", id="a variable of the plane"),
        pytest.param({"args": ["x" * 70_000]}, "args", id="more than a start-up script can carry"),
        pytest.param({"models": []}, "models", id="a word of another trade"),
        pytest.param({"runtime": "spark"}, "runtime", id="a runtime for forecasts"),
    ],
)
def test_a_task_that_cannot_be_is_refused_by_field(change, field):
    with pytest.raises(Rejected) as rejected:
        parse_task({**TASK, **change})
    assert field in [fault.field for fault in rejected.value.faults]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        pytest.param({"image": None}, "image", id="no image anywhere"),
        pytest.param({"runtime": "gke"}, "SF_GKE_CLUSTER", id="on Kubernetes, but no cluster stands"),
        pytest.param(
            {
                "runtime": "gke",
                "command": [],
                "env": {"TOKEN": "secret://projects/p/secrets/s/versions/1"},
                "variables": {"SF_GKE_CLUSTER": "c"},
            },
            "command",
            id="secrets on Kubernetes for nobody knows what",
        ),
        pytest.param({"workers": 2}, "workers", id="two VMs"),
        pytest.param({"hardware": "gpu"}, "config.gpu_type", id="acceptance-Z18 task"),
        pytest.param({"gpu_type": "L4"}, "config.gpu_type", id="a GPU type on cpu"),
        pytest.param(
            {"machine_type": "g2-standard-8"}, "config.machine_type", id="a GPU machine without a GPU"
        ),
        pytest.param({"request": {"families": ("ml",)}}, "families", id="a family"),
        pytest.param({"request": {"overrides": {"ml": {}}}}, "overrides", id="an override"),
        pytest.param({"variables": {"SF_COMPUTE_SA": ""}}, "SF_COMPUTE_SA", id="no identity"),
    ],
)
def test_a_task_that_cannot_be_served_is_refused_by_field(plan, arguments, field):
    with pytest.raises(Rejected) as rejected:
        plan(**arguments)
    assert [fault.field for fault in rejected.value.faults] == [field]


def test_a_task_may_have_many_workers_on_a_standing_cluster(plan):
    variables = {"SF_GKE_CLUSTER": "standing", "SF_COMPUTE_SA": "", "SF_SUBNETWORK_URI": ""}
    planned = plan(runtime="gke", workers=7, variables=variables)
    assert (planned.runtime, planned.worker_count) == ("gke", 7)
    assert (planned.kubernetes.cluster_name, planned.kubernetes.ephemeral) == ("standing", False)
    assert planned.labels["runtime"] == "gke"
