"""An Indexed Job: its body, row by row and against the published schemas, and what its state means."""

from __future__ import annotations

import json
from dataclasses import replace

import kubernetes_validate
import pytest

from runtender.model import SubmitKind
from runtender.runtimes.gke_job import JobState, classify_job, indexed_job

STANDING = {
    "gke_cluster_name": "my-gke",
    "gke_namespace": "forecasting-ns",
    "machine_type": "n2-standard-8",
    "workers": 2,
}
ON_GPU = {"use_gpu": True, "gpu_type": "L4"}
PANEL_MODELS = ("tide", "tsmixer")


def worker_of(body):
    (container,) = body["spec"]["template"]["spec"]["containers"]
    return container


def env_of(body):
    return {each["name"]: each["value"] for each in worker_of(body)["env"]}


@pytest.mark.parametrize("workers", [pytest.param(2, id="acceptance-D1")])
def test_a_named_cluster_stands_and_the_workers_are_as_asked(on_kubernetes, workers):
    plan = on_kubernetes(**STANDING).plan
    assert (plan.ephemeral_cluster, plan.cluster_name, plan.namespace) == (False, "my-gke", "forecasting-ns")
    assert (plan.job.worker_count, plan.job.accelerator_count) == (workers, 0)
    assert plan.job.resource_plan["max_units"] == workers
    assert plan.pools == ()


@pytest.mark.parametrize(
    ("server_minor", "limit"),
    [
        pytest.param(30, {"backoffLimit": 0}, id="acceptance-D2"),
        pytest.param(
            34, {"backoffLimitPerIndex": 0}, id="acceptance-D2 (the plane's own): an index of its own"
        ),
    ],
)
def test_a_job_has_an_index_per_worker(on_kubernetes, server_minor, limit):
    body = indexed_job(on_kubernetes(**STANDING), server_minor=server_minor)
    spec = body["spec"]
    assert (body["apiVersion"], body["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert (spec["completions"], spec["parallelism"]) == (2, 2)
    assert {name: value for name, value in spec.items() if name.startswith("backoff")} == limit


@pytest.mark.parametrize("total", [pytest.param("2", id="acceptance-D3")])
def test_a_worker_is_told_who_it_is(on_kubernetes, total):
    bearing = on_kubernetes(**STANDING)
    env = env_of(indexed_job(bearing))
    assert env["JOB_COMPLETION_TOTAL"] == total
    assert env["SF_VERTEX_JOB_ID"] == bearing.name
    assert (env["SF_PROJECT_ID"], env["OMP_NUM_THREADS"], env["SF_NONCE"]) == ("p", "1", bearing.row.nonce)
    assert "SF_PROVISIONED_HARDWARE" not in env, "absent means a CPU"


@pytest.mark.parametrize("cpu", [pytest.param("4", id="acceptance-D4")])
def test_a_pod_asks_for_most_of_a_node_and_is_not_limited(on_kubernetes, cpu):
    assert worker_of(indexed_job(on_kubernetes(**STANDING)))["resources"] == {
        "requests": {"cpu": cpu, "memory": "19Gi"}
    }


@pytest.mark.parametrize("accelerator", [pytest.param("nvidia-l4", id="acceptance-D5")])
def test_a_gpu_is_asked_for_limited_tolerated_and_selected(on_kubernetes, accelerator):
    bearing = on_kubernetes(models=("tide",), **ON_GPU)
    pod = indexed_job(bearing)["spec"]["template"]["spec"]
    assert (bearing.plan.job.machine_type, bearing.plan.job.accelerator_type) == (
        "g2-standard-8",
        accelerator,
    )
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert {each["key"] for each in pod["tolerations"]} == {"scale-forecasting/pool", "nvidia.com/gpu"}
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": accelerator}
    assert env_of(indexed_job(bearing))["SF_PROVISIONED_HARDWARE"] == "gpu"


@pytest.mark.parametrize("taint", [pytest.param("scale-forecasting/pool", id="acceptance-D6")])
def test_a_cpu_pod_tolerates_its_pool_and_selects_nothing(on_kubernetes, taint):
    pod = indexed_job(on_kubernetes(**STANDING))["spec"]["template"]["spec"]
    assert [each["key"] for each in pod["tolerations"]] == [taint]
    assert "nodeSelector" not in pod


def test_a_job_outlives_the_wait_for_nodes_and_a_pod_only_its_own_time(on_kubernetes):
    spec = indexed_job(on_kubernetes(**STANDING))["spec"]
    assert spec["activeDeadlineSeconds"] == 2700 + 1800 + 86400 + 600
    assert spec["template"]["spec"]["activeDeadlineSeconds"] == 1800 + 86400


def test_a_pod_that_kubernetes_takes_away_is_not_counted_and_an_exit_code_fails_its_index(on_kubernetes):
    spec = indexed_job(on_kubernetes(**STANDING))["spec"]
    assert spec["podFailurePolicy"]["rules"] == [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {
            "action": "FailIndex",
            "onExitCodes": {"containerName": "worker", "operator": "NotIn", "values": [0]},
        },
    ]
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_an_older_server_gets_only_fields_it_knows(on_kubernetes):
    spec = indexed_job(on_kubernetes(**STANDING), server_minor=32)["spec"]
    assert spec["podFailurePolicy"]["rules"][1]["action"] == "FailJob"
    assert "podReplacementPolicy" not in spec
    assert "podFailurePolicy" not in indexed_job(on_kubernetes(**STANDING), server_minor=30)["spec"]


def test_shared_memory_is_bounded_and_a_pod_at_work_stays_where_it_is(on_kubernetes):
    template = indexed_job(on_kubernetes(**STANDING))["spec"]["template"]
    assert template["spec"]["volumes"] == [
        {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": str(32 * 1024**3 * 15 // 100)}}
    ]
    assert template["metadata"]["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def test_a_spot_pod_knows_how_little_time_it_is_left(on_kubernetes):
    spot = on_kubernetes(overrides={"statistical": {"spot": True}}, **STANDING)
    assert indexed_job(spot)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 15


def test_a_task_runs_its_own_command(on_kubernetes):
    bearing = on_kubernetes(**STANDING)
    task = replace(bearing.plan.job, kind=SubmitKind.TASK, command=("echo",), args=("hello",))
    worker = worker_of(indexed_job(replace(bearing, plan=replace(bearing.plan, job=task))))
    assert (worker["command"], worker["args"]) == (["echo"], ["hello"])


@pytest.mark.parametrize("minor", [31, 33, 34])
@pytest.mark.parametrize(
    "compute",
    [
        pytest.param(STANDING, id="CPU"),
        pytest.param({"workers": 3}, id="own cluster"),
        pytest.param({**ON_GPU, "accelerator_count": 2}, id="two GPUs"),
    ],
)
def test_a_job_is_valid_for_the_server_it_is_made_for(on_kubernetes, minor, compute):
    models = PANEL_MODELS if compute.get("use_gpu") else ("theta", "autoets")
    body = indexed_job(on_kubernetes(models=models, **compute), server_minor=minor)
    kubernetes_validate.validate(json.loads(json.dumps(body)), f"1.{minor}", strict=True)


def test_a_body_with_a_misspelt_field_is_found_out(on_kubernetes):
    body = indexed_job(on_kubernetes(**STANDING))
    body["spec"]["activeDeadline"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(body, "1.34", strict=True)


def job(completions=2, conditions=(), **status):
    return {"spec": {"completions": completions}, "status": {"conditions": list(conditions), **status}}


@pytest.mark.parametrize(
    ("seen", "state", "words"),
    [
        pytest.param(None, JobState.NOT_FOUND, "Kubernetes Job not found", id="acceptance-D16"),
        pytest.param(job(succeeded=2), JobState.SUCCEEDED, "succeeded=2/2", id="acceptance-D17"),
        pytest.param(
            job(conditions=[{"type": "Complete", "status": "True"}]),
            JobState.SUCCEEDED,
            "succeeded=0/2",
            id="acceptance-D18",
        ),
        pytest.param(
            job(conditions=[{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]),
            JobState.FAILED,
            "BackoffLimitExceeded",
            id="acceptance-D19",
        ),
        pytest.param(job(active=1), JobState.RUNNING, "active=1 succeeded=0/2", id="acceptance-D20"),
        pytest.param(
            job(active=1, failed=1), JobState.RUNNING, "active=1 succeeded=0/2", id="acceptance-D21"
        ),
        pytest.param(job(failed=1), JobState.FAILED, "failed=1 active=0", id="a failure and nothing active"),
        pytest.param(
            job(conditions=[{"type": "Failed", "status": "False"}]),
            JobState.RUNNING,
            "active=0 succeeded=0/2",
            id="a condition that does not hold",
        ),
        pytest.param({}, JobState.RUNNING, "active=0 succeeded=0/1", id="a Job that was just made"),
    ],
)
def test_a_jobs_own_status_says_how_it_stands(seen, state, words):
    assert classify_job(seen) == (state, words)
