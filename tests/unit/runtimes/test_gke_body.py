"""The body of an Indexed Job, row by row and against the published schemas."""

from __future__ import annotations

import json
from dataclasses import replace

import kubernetes_validate
import pytest

from runtender.forecast.catalogue import GIB
from runtender.model import SubmitKind
from runtender.runtimes.gke_body import indexed_job
from runtender.worker.source import index_source

ON_GPU = {"models": ("tide", "tsmixer"), "use_gpu": True, "gpu_type": "L4"}
AUTOPILOT = {"autopilot": True, "machine_types": ()}
NO_DISRUPTION_COUNTS = {
    "action": "Ignore",
    "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
}


def planned(bearing, **changes):
    """The same try with another plan for Kubernetes."""
    kubernetes = replace(bearing.kubernetes, **changes)
    return replace(bearing, job=replace(bearing.job, plan=replace(bearing.plan, kubernetes=kubernetes)))


def with_plan(bearing, **changes):
    return replace(bearing, job=replace(bearing.job, plan=replace(bearing.job.plan, **changes)))


def pod_of(bearing):
    return indexed_job(bearing)["spec"]["template"]["spec"]


def worker_of(bearing):
    (container,) = pod_of(bearing)["containers"]
    return container


def env_of(bearing):
    return {each["name"]: each.get("value") for each in worker_of(bearing)["env"]}


@pytest.mark.parametrize("workers", [pytest.param(2, id="acceptance-D1")])
def test_a_named_cluster_stands_and_the_workers_are_as_asked(standing, workers):
    bearing = standing()
    plan, kubernetes = bearing.plan, bearing.kubernetes
    assert (kubernetes.ephemeral, kubernetes.cluster_name, kubernetes.namespace) == (
        False,
        "my-gke",
        "forecasting-ns",
    )
    assert (plan.worker_count, plan.accelerator_count) == (workers, 0)
    assert plan.resource_plan["max_units"] == workers
    assert kubernetes.pools == ()


@pytest.mark.parametrize(
    ("server_minor", "limit"),
    [
        pytest.param(30, {"backoffLimit": 0}, id="acceptance-D2"),
        pytest.param(
            34, {"backoffLimitPerIndex": 0}, id="acceptance-D2 (the plane's own): an index of its own"
        ),
    ],
)
def test_a_job_has_an_index_per_worker(standing, server_minor, limit):
    body = indexed_job(standing({"server_minor": server_minor}))
    spec = body["spec"]
    assert (body["apiVersion"], body["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert (spec["completions"], spec["parallelism"]) == (2, 2)
    assert {name: value for name, value in spec.items() if name.startswith("backoff")} == limit


@pytest.mark.parametrize("total", [pytest.param("2", id="acceptance-D3")])
def test_a_worker_is_told_who_it_is(standing, total):
    bearing = standing()
    env = env_of(bearing)
    assert env["JOB_COMPLETION_TOTAL"] == total
    assert env["SF_VERTEX_JOB_ID"] == bearing.name
    assert (env["SF_PROJECT_ID"], env["OMP_NUM_THREADS"], env["SF_NONCE"]) == ("p", "1", bearing.row.nonce)
    assert env["SF_INDEX_RETRIES"] == "0"
    assert "SF_PROVISIONED_HARDWARE" not in env, "absent means a CPU"


def test_a_worker_learns_its_pods_uid_from_kubernetes(standing):
    bearing = with_plan(standing(), env={"SF_POD_UID": "made up", "MINE": "kept"})
    listed = [each for each in worker_of(bearing)["env"] if each["name"] in {"SF_POD_UID", "MINE"}]
    assert listed == [
        {"name": "MINE", "value": "kept"},
        {"name": "SF_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]


@pytest.mark.parametrize("cpu", [pytest.param("4", id="acceptance-D4")])
def test_a_pod_asks_for_most_of_a_node_and_is_not_limited(standing, cpu):
    assert worker_of(standing())["resources"] == {"requests": {"cpu": cpu, "memory": "19Gi"}}


@pytest.mark.parametrize(
    ("nodes", "requests"),
    [
        pytest.param(("e2-standard-2",), {"cpu": "1", "memory": "4Gi"}, id="smaller"),
        pytest.param(("n1-standard-8",), {"cpu": "4", "memory": "18Gi"}, id="another series"),
        pytest.param(("e2-standard-2", "n2-standard-8"), {"cpu": "4", "memory": "19Gi"}, id="as planned"),
    ],
)
def test_a_pod_asks_for_what_the_nodes_that_stand_have(standing, nodes, requests):
    assert worker_of(standing({"machine_types": nodes}))["resources"] == {"requests": requests}


@pytest.mark.parametrize("accelerator", [pytest.param("nvidia-l4", id="acceptance-D5")])
def test_a_gpu_is_asked_for_limited_tolerated_and_selected(on_kubernetes, accelerator):
    bearing = on_kubernetes(models=("tide",), use_gpu=True, gpu_type="L4")
    pod = pod_of(bearing)
    assert (bearing.plan.machine_type, bearing.plan.accelerator_type) == ("g2-standard-8", accelerator)
    assert pod["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert {each["key"] for each in pod["tolerations"]} == {"scale-forecasting/pool", "nvidia.com/gpu"}
    assert pod["nodeSelector"] == {"cloud.google.com/gke-accelerator": accelerator}
    assert env_of(bearing)["SF_PROVISIONED_HARDWARE"] == "gpu"


@pytest.mark.parametrize("taint", [pytest.param("scale-forecasting/pool", id="acceptance-D6")])
def test_a_cpu_pod_tolerates_its_pool_and_selects_nothing(standing, taint):
    pod = pod_of(standing())
    assert [each["key"] for each in pod["tolerations"]] == [taint]
    assert "nodeSelector" not in pod


def test_a_job_outlives_the_wait_for_nodes_and_a_pod_only_its_own_time(standing):
    spec = indexed_job(standing())["spec"]
    assert spec["activeDeadlineSeconds"] == 2700 + 1800 + 86400 + 600
    assert spec["template"]["spec"]["activeDeadlineSeconds"] == 1800 + 86400


def test_a_pod_that_kubernetes_takes_away_is_not_counted_and_an_exit_code_fails_its_index(standing):
    spec = indexed_job(standing())["spec"]
    assert spec["podFailurePolicy"]["rules"] == [
        NO_DISRUPTION_COUNTS,
        {
            "action": "FailIndex",
            "onExitCodes": {"containerName": "worker", "operator": "NotIn", "values": [0]},
        },
    ]
    assert spec["podReplacementPolicy"] == "Failed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.parametrize(
    ("minor", "fields"),
    [
        pytest.param(34, {"backoffLimitPerIndex": 2, "maxFailedIndexes": 1}, id="per index"),
        pytest.param(32, {"backoffLimit": 4}, id="an older server counts for all together"),
    ],
)
def test_an_index_that_may_be_repeated_is_not_failed_by_its_exit_code(standing, minor, fields):
    bearing = planned(standing({"server_minor": minor}), retries_per_index=2, most_failed_indexes=1)
    spec = indexed_job(bearing)["spec"]
    assert {name: spec[name] for name in spec if name.startswith(("backoff", "maxFailed"))} == fields
    assert spec["podFailurePolicy"]["rules"] == [NO_DISRUPTION_COUNTS]
    assert env_of(bearing)["SF_INDEX_RETRIES"] == "2"


def test_no_more_indexes_may_fail_than_there_are(standing):
    assert indexed_job(planned(standing(), most_failed_indexes=9))["spec"]["maxFailedIndexes"] == 2


def test_an_older_server_gets_only_fields_it_knows(standing):
    spec = indexed_job(standing({"server_minor": 32}))["spec"]
    assert spec["podFailurePolicy"]["rules"][1]["action"] == "FailJob"
    assert "podReplacementPolicy" not in spec
    assert "podFailurePolicy" not in indexed_job(standing({"server_minor": 30}))["spec"]


@pytest.mark.parametrize(
    ("nodes", "most"),
    [
        pytest.param((), 32 * GIB * 15 // 100, id="of the planned machine"),
        pytest.param(("e2-standard-2",), 8 * GIB * 15 // 100, id="of a smaller node"),
        pytest.param(("n2-standard-32",), 32 * GIB * 15 // 100, id="no more than planned"),
    ],
)
def test_shared_memory_is_bounded_by_what_the_node_has_for_it(standing, nodes, most):
    (volume,) = pod_of(standing({"machine_types": nodes}))["volumes"]
    assert volume == {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": str(most)}}


@pytest.mark.parametrize(
    "machine", ["n2-standard-8", "e2-standard-2", "n2-highcpu-4", "a2-highgpu-1g", "odd"]
)
def test_shared_memory_is_part_of_the_memory_that_is_asked_for(standing, machine):
    bearing = with_plan(planned(standing(), node_machine_type=machine), shm_size_bytes=0)
    pod = pod_of(bearing)
    asked = int(pod["containers"][0]["resources"]["requests"]["memory"].removesuffix("Gi")) * GIB
    assert 0 < int(pod["volumes"][0]["emptyDir"]["sizeLimit"]) <= asked // 2


def test_a_pod_at_work_stays_where_it_is(standing):
    template = indexed_job(standing())["spec"]["template"]
    assert template["metadata"]["annotations"] == {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}


def test_a_spot_pod_knows_how_little_time_it_is_left(standing):
    assert pod_of(with_plan(standing(), spot=True))["terminationGracePeriodSeconds"] == 15


def test_a_worker_may_do_nothing_that_it_does_not_need(standing):
    pod = pod_of(standing())
    assert pod["automountServiceAccountToken"] is False
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def test_a_pod_has_the_service_account_that_is_set_or_none(standing):
    assert pod_of(planned(standing(), service_account_name="worker"))["serviceAccountName"] == "worker"
    assert "serviceAccountName" not in pod_of(standing())


def test_every_label_is_ours_where_a_users_has_the_same_name(standing):
    bearing = with_plan(standing(), labels={"team": "Demand Planning", "sf-nonce": "forged"})
    body = indexed_job(bearing)
    labels = body["metadata"]["labels"]
    assert (labels["team"], labels["sf-nonce"]) == ("demand-planning", bearing.row.nonce)
    assert (labels["sf-plane"], labels["sf-kind"], labels["sf-key"]) == ("main", "job", bearing.job.key)
    assert body["spec"]["template"]["metadata"]["labels"] == labels


def test_a_forecast_runs_the_bootstrap_that_tells_how_its_index_ended(standing):
    bearing = standing()
    worker = worker_of(bearing)
    assert worker["command"] == ["/opt/venv/bin/python", "-c", index_source()]
    assert worker["args"][:2] == ["--package-uri", bearing.plan.package_uri]
    assert worker["args"][-len(bearing.plan.driver_args) :] == list(bearing.plan.driver_args)


def test_a_task_runs_its_own_command(standing):
    task = with_plan(standing(), kind=SubmitKind.TASK, command=("echo",), args=("hello",))
    assert (worker_of(task)["command"], worker_of(task)["args"]) == (["echo"], ["hello"])


def test_what_a_shell_would_expand_is_not_expanded_by_kubernetes(standing):
    task = with_plan(
        standing(),
        kind=SubmitKind.TASK,
        command=("bash", "-c"),
        args=("echo $HOME $(SF_NONCE) $$",),
        env={"A": "$(B)"},
    )
    assert worker_of(task)["args"] == ["echo $HOME $$(SF_NONCE) $$$"]
    assert env_of(task)["A"] == "$$(B)"


@pytest.mark.parametrize(
    ("machine", "requests"),
    [
        pytest.param("n2-standard-8", {"cpu": "7", "memory": "27Gi"}, id="all that the cells were sized for"),
        pytest.param("n2-highcpu-8", {"cpu": "7", "memory": "7Gi"}, id="a GiB for each vCPU at least"),
        pytest.param("n2-highmem-8", {"cpu": "9", "memory": "54Gi"}, id="6.5 GiB for each vCPU at most"),
        pytest.param("odd", {"cpu": "7", "memory": "8Gi"}, id="memory not known"),
    ],
)
def test_an_autopilot_is_asked_for_the_whole_worker_in_its_own_measures(standing, machine, requests):
    bearing = planned(standing(AUTOPILOT), node_machine_type=machine)
    assert worker_of(bearing)["resources"] == {"requests": requests}


def test_an_autopilot_gets_no_taint_or_selector_that_it_refuses(standing):
    pod = pod_of(standing(AUTOPILOT))
    assert "tolerations" not in pod
    assert "nodeSelector" not in pod


def test_an_autopilots_pod_may_choose_a_class_a_gpu_and_spot(standing):
    bearing = with_plan(planned(standing(AUTOPILOT, **ON_GPU), compute_class="Accelerator"), spot=True)
    template = indexed_job(bearing)["spec"]["template"]
    assert template["spec"]["nodeSelector"] == {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/compute-class": "Accelerator",
        "cloud.google.com/gke-spot": "true",
    }
    assert template["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "annotations" not in template["metadata"], "no Spot pod is kept in place there"


@pytest.mark.parametrize("minor", [31, 33, 34])
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="CPU"),
        pytest.param({"retries_per_index": 2, "most_failed_indexes": 1}, id="repeats"),
        pytest.param({"service_account_name": "worker", "compute_class": "Balanced"}, id="settings"),
        pytest.param({"autopilot": True}, id="Autopilot"),
    ],
)
@pytest.mark.parametrize("asked", [pytest.param({}, id="CPU"), pytest.param(ON_GPU, id="GPU")])
def test_a_job_is_valid_for_the_server_it_is_made_for(standing, minor, changes, asked):
    body = indexed_job(planned(standing({"server_minor": minor}, **asked), **changes))
    kubernetes_validate.validate(json.loads(json.dumps(body)), f"1.{minor}", strict=True)


def test_a_body_with_a_misspelt_field_is_found_out(standing):
    body = indexed_job(standing())
    body["spec"]["activeDeadline"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(json.loads(json.dumps(body)), "1.34", strict=True)
