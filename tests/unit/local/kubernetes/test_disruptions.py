"""What takes pods away that did nothing wrong, and that a Job does not hold against them."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.events import KillReason

PODS = "/api/v1/namespaces/default/pods"
SAFE = {
    "backoffLimitPerIndex": 0,
    "podReplacementPolicy": "Failed",
    "podFailurePolicy": {
        "rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}},
        ]
    },
}


def a_worker(cluster, job):
    """Start a Job of one worker and return its pod."""
    cluster.create_job(job(workers=1, **SAFE))
    cluster.wait(10)
    (pod,) = cluster.pods()
    return pod


def test_an_evicted_pod_is_replaced_and_not_counted(cluster, job) -> None:
    pod = a_worker(cluster, job)
    name = pod["metadata"]["name"]

    assert cluster.core.evict("default", name, cluster.now)
    cluster.wait(2)

    found = cluster.pod(name)
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "Evicted")
    assert cluster.conditions(found)["DisruptionTarget"] == "TerminationByKubelet"
    cluster.wait(20)
    assert len(cluster.started()) == 2
    status = cluster.job()["status"]
    assert (status["active"], status.get("failed"), status["failedIndexes"]) == (1, None, "")


def test_without_a_rule_for_it_an_eviction_counts(cluster, job) -> None:
    cluster.create_job(job(workers=1, backoffLimit=0))
    cluster.wait(10)

    cluster.core.evict("default", cluster.pods()[0]["metadata"]["name"], cluster.now)
    cluster.wait(10)

    assert cluster.conditions(cluster.job())["Failed"] == "BackoffLimitExceeded"


def test_a_preempted_pod_makes_room(cluster, job) -> None:
    pod = a_worker(cluster, job)

    assert cluster.core.preempt("default", pod["metadata"]["name"], cluster.now)
    found = cluster.pod(pod["metadata"]["name"])
    assert cluster.conditions(found)["DisruptionTarget"] == "PreemptionByScheduler"
    assert "deletionTimestamp" in found["metadata"]

    cluster.wait(30)
    assert cluster.job()["status"].get("failed") is None
    assert len(cluster.started()) == 2


def test_the_eviction_api_lets_a_pod_go(cluster, job) -> None:
    pod = a_worker(cluster, job)
    name = pod["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}

    assert cluster.call("POST", f"{PODS}/{name}/eviction", eviction)[0] == 201

    assert cluster.conditions(cluster.pod(name))["DisruptionTarget"] == "EvictionByEvictionAPI"
    cluster.wait(30)
    assert (cluster.job()["status"]["active"], cluster.job()["status"].get("failed")) == (1, None)


def test_a_spot_node_takes_its_pods_along_with_a_warning(cluster, job) -> None:
    pod = a_worker(cluster, job)
    node = pod["spec"]["nodeName"]

    assert cluster.core.take_node(node, cluster.now)
    cluster.wait(2)

    found = cluster.pod(pod["metadata"]["name"])
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "Terminated")
    (kill,) = cluster.killed()
    assert (kill.reason, kill.grace.total_seconds()) == (KillReason.PREEMPTED, 15)
    cluster.wait(30)
    assert cluster.call("GET", f"/api/v1/nodes/{node}")[0] == 404
    assert cluster.started()[-1].node != node
    assert cluster.job()["status"].get("failed") is None


def test_a_lost_node_keeps_its_pods_until_they_are_collected(cluster, job) -> None:
    pod = a_worker(cluster, job)
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]

    assert cluster.core.lose_node(node, cluster.now)
    cluster.wait(1)
    assert [kill.reason for kill in cluster.killed()] == [KillReason.NODE_LOST]
    # Nobody knows yet, and what a runner says of it does not count.
    assert cluster.pod(name)["status"]["phase"] == "Running"
    assert cluster.call("GET", f"{PODS}/{name}/log")[0] == 500

    cluster.wait(45)
    ready = next(one for one in cluster.call("GET", f"/api/v1/nodes/{node}")[1]["status"]["conditions"])
    assert (ready["type"], ready["status"]) == ("Ready", "Unknown")
    assert "Ready" not in cluster.conditions(cluster.pod(name))

    cluster.wait(300)
    stuck = cluster.pod(name)
    assert (stuck["status"]["phase"], "deletionTimestamp" in stuck["metadata"]) == ("Running", True)
    assert cluster.conditions(stuck)["DisruptionTarget"] == "DeletionByTaintManager"
    assert cluster.job()["status"]["terminating"] == 1
    assert len(cluster.started()) == 1

    cluster.wait(320)
    assert cluster.call("GET", f"{PODS}/{name}")[0] == 404
    cluster.wait(30)
    assert len(cluster.started()) == 2
    assert cluster.started()[1].node != node
    assert cluster.job()["status"].get("failed") is None


def test_a_collected_pod_says_that_its_node_is_gone(cluster, pod) -> None:
    cluster.create_pod(pod(metadata={"finalizers": ["example.org/kept"]}))
    cluster.wait(10)
    cluster.core.lose_node(cluster.pod()["spec"]["nodeName"], cluster.now)

    cluster.wait(700)

    found = cluster.pod()
    assert found["status"]["phase"] == "Failed"
    assert cluster.conditions(found)["DisruptionTarget"] == "DeletionByPodGC"


def test_on_a_lost_node_nothing_begins(cluster, pod) -> None:
    cluster.create_pod(pod())
    cluster.wait(3)
    cluster.core.lose_node(cluster.pod()["spec"]["nodeName"], cluster.now)

    cluster.wait(60)

    assert cluster.started() == []


def test_a_deleted_pod_of_a_lost_node_is_stuck(cluster, job) -> None:
    pod = a_worker(cluster, job)
    name = pod["metadata"]["name"]
    cluster.core.lose_node(pod["spec"]["nodeName"], cluster.now)

    cluster.call("DELETE", f"{PODS}/{name}")
    cluster.wait(120)
    assert "deletionTimestamp" in cluster.pod(name)["metadata"]

    cluster.wait(600)
    assert cluster.call("GET", f"{PODS}/{name}")[0] == 404


@pytest.mark.parametrize("blow", ["evict", "preempt"])
def test_what_is_not_at_work_cannot_be_hit(cluster, blow) -> None:
    assert not getattr(cluster.core, blow)("default", "nobody", cluster.now)


@pytest.mark.parametrize("blow", ["take_node", "lose_node"])
def test_a_node_that_is_not_there_cannot_be_hit(cluster, blow) -> None:
    assert not getattr(cluster.core, blow)("nowhere", cluster.now)
