"""Where pods run, and what they say while there is no room."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.nodes import NodePool

L4 = NodePool(name="l4", machine_type="g2-standard-8", nodes=1, accelerator="nvidia-l4", accelerator_count=1)
SPOT = NodePool(
    name="spot", nodes=1, spot=True, taints=({"key": "pool", "value": "spot", "effect": "NoSchedule"},)
)


def asking(**amounts: str):
    return {"resources": {"requests": amounts}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"container": asking(cpu="64")}, "Insufficient cpu", id="cpu"),
        pytest.param({"container": asking(memory="500Gi")}, "Insufficient memory", id="memory"),
        pytest.param(
            {"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}},
            "Insufficient nvidia.com/gpu",
            id="gpu",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, "didn't match Pod's node affinity/selector", id="selector"
        ),
    ],
)
def test_a_pod_without_room_says_why(cluster, pod, spec, why) -> None:
    cluster.create_pod(pod(**spec))
    cluster.wait(5)

    found = cluster.pod()
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    assert condition["message"].startswith("0/3 nodes are available: 3 ")
    assert why in condition["message"]
    assert cluster.reasons("p") == ["FailedScheduling", "NotTriggerScaleUp"]
    assert found["status"]["phase"] == "Pending"


def test_one_worker_fits_on_a_node_and_the_next_waits_for_its_end(make_cluster, pod) -> None:
    cluster = make_cluster(pools=[NodePool(nodes=1)])
    cluster.create_pod(pod("a"))
    cluster.create_pod(pod("b"))
    cluster.wait(20)
    assert [cluster.pod(name)["status"]["phase"] for name in "ab"] == ["Running", "Pending"]

    cluster.core.pod_exited(cluster.started()[0].uid, 0, cluster.now)
    cluster.wait(10)

    assert cluster.pod("b")["status"]["phase"] == "Running"


def test_a_pool_grows_for_pods_that_would_fit_on_one_more_node(make_cluster, pod) -> None:
    cluster = make_cluster(pools=[NodePool(nodes=1, most=2)])
    for name in "abc":
        cluster.create_pod(pod(name))
    cluster.wait(60)
    assert len(cluster.core.documents("nodes")) == 1
    assert "TriggeredScaleUp" in cluster.reasons("b")

    cluster.wait(60)

    assert len(cluster.core.documents("nodes")) == 2
    assert [cluster.pod(name)["status"]["phase"] for name in "abc"] == ["Running", "Running", "Pending"]


def test_a_pool_does_not_grow_for_a_pod_that_would_not_fit(make_cluster, pod) -> None:
    cluster = make_cluster(pools=[NodePool(nodes=1, most=5)])
    cluster.create_pod(pod(container=asking(cpu="64")))
    cluster.wait(300)

    assert len(cluster.core.documents("nodes")) == 1


def test_room_that_comes_late_is_found(cluster, pod) -> None:
    for name in "abcd":
        cluster.create_pod(pod(name))
    cluster.wait(600)
    assert cluster.pod("d")["status"]["phase"] == "Pending"

    cluster.core.add_node("default-pool", cluster.now)
    cluster.wait(10)

    assert cluster.pod("d")["status"]["phase"] == "Running"


GPU_LIMIT = {"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}
GPU_TOLERATION = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("spec", "pool"),
    [
        pytest.param({}, "default-pool", id="plain"),
        pytest.param({**GPU_LIMIT, **GPU_TOLERATION}, "l4", id="gpu"),
        pytest.param(
            {
                "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
                "tolerations": [{"operator": "Exists"}],
            },
            "l4",
            id="accelerator",
        ),
        pytest.param(
            {
                "nodeSelector": {"cloud.google.com/gke-spot": "true"},
                "tolerations": [{"key": "pool", "value": "spot"}],
            },
            "spot",
            id="spot",
        ),
        pytest.param(
            {
                "tolerations": [{"operator": "Exists"}],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "cloud.google.com/gke-spot", "operator": "Exists"}
                                    ]
                                }
                            ]
                        }
                    }
                },
            },
            "spot",
            id="affinity",
        ),
    ],
)
def test_a_pod_goes_where_it_belongs(make_cluster, pod, spec, pool) -> None:
    cluster = make_cluster(pools=[NodePool(nodes=1), L4, SPOT])
    cluster.create_pod(pod(**spec))
    cluster.wait(5)

    assert f"-{pool}-" in cluster.pod()["spec"]["nodeName"]


def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(make_cluster, pod) -> None:
    cluster = make_cluster(pools=[L4])
    cluster.create_pod(pod())
    cluster.wait(5)

    (condition,) = cluster.pod()["status"]["conditions"]
    assert "1 node(s) had untolerated taint {nvidia.com/gpu: present}" in condition["message"]


def test_nodes_keep_a_part_for_themselves(cluster) -> None:
    node = cluster.core.documents("nodes")[0]["status"]

    assert node["capacity"]["cpu"] == "8"
    assert node["allocatable"]["cpu"] == "7910m"
    assert int(node["allocatable"]["memory"]) < int(node["capacity"]["memory"])
