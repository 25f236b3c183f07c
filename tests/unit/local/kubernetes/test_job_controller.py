"""Jobs as the Job controller of Kubernetes 1.34 lets them live."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from runtender.local.kubernetes.events import PodStarted

JOBS = "/apis/batch/v1/namespaces/default/jobs"
FAIL_INDEX = {"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [0]}}
FAIL_JOB = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
COUNT_42 = {"action": "Count", "onExitCodes": {"operator": "In", "values": [42]}}
IGNORE_42 = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}


def by_index(codes: dict[int, int | None], other: int | None = 0):
    """Return an ending by the pod's index."""

    def ending(started: PodStarted) -> int | None:
        return codes.get(int(started.env["JOB_COMPLETION_INDEX"]), other)

    return ending


def once(index: int, code: int):
    """Return an ending in which the first pod of an index fails and all others end well."""
    seen: set[int] = set()

    def ending(started: PodStarted) -> int:
        own = int(started.env["JOB_COMPLETION_INDEX"])
        first = own not in seen
        seen.add(own)
        return code if own == index and first else 0

    return ending


def policy(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"rules": list(rules)}


ENDS = [
    pytest.param(
        {},
        by_index({}),
        "Complete",
        "CompletionsReached",
        {"succeeded": 2, "completedIndexes": "0,1"},
        id="all-well",
    ),
    pytest.param(
        {"backoffLimit": 0},
        by_index({1: 3}),
        "Failed",
        "BackoffLimitExceeded",
        {"succeeded": 1, "failed": 1},
        id="no-retries",
    ),
    pytest.param(
        {"backoffLimit": 6},
        once(1, 3),
        "Complete",
        "CompletionsReached",
        {"succeeded": 2, "failed": 1},
        id="one-retry",
    ),
    pytest.param(
        {"backoffLimitPerIndex": 0},
        by_index({1: 3}),
        "Failed",
        "FailedIndexes",
        {"succeeded": 1, "failed": 1, "completedIndexes": "0", "failedIndexes": "1"},
        id="one-index-lost",
    ),
    pytest.param(
        {"backoffLimitPerIndex": 1},
        once(0, 3),
        "Complete",
        "CompletionsReached",
        {"succeeded": 2, "failed": 1, "failedIndexes": ""},
        id="index-retried",
    ),
    pytest.param(
        {"backoffLimitPerIndex": 1},
        by_index({0: 3}),
        "Failed",
        "FailedIndexes",
        {"failed": 2, "failedIndexes": "0"},
        id="index-retried-in-vain",
    ),
    pytest.param(
        {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0},
        by_index({0: 3}, other=None),
        "Failed",
        "MaxFailedIndexesExceeded",
        {},
        id="too-many-indexes-lost",
    ),
    pytest.param(
        {"podFailurePolicy": policy(FAIL_JOB)},
        by_index({0: 42}, other=None),
        "Failed",
        "PodFailurePolicy",
        {"failed": 2},
        id="policy-fails-the-job",
    ),
    pytest.param(
        {"podFailurePolicy": policy(FAIL_JOB)},
        once(0, 41),
        "Complete",
        "CompletionsReached",
        {"failed": 1},
        id="policy-does-not-match",
    ),
    pytest.param(
        {"podFailurePolicy": policy(FAIL_INDEX), "backoffLimitPerIndex": 5},
        by_index({0: 3}),
        "Failed",
        "FailedIndexes",
        {"failed": 1, "failedIndexes": "0"},
        id="policy-fails-the-index-at-once",
    ),
    pytest.param(
        {"podFailurePolicy": policy(COUNT_42, FAIL_INDEX), "backoffLimitPerIndex": 5},
        once(0, 42),
        "Complete",
        "CompletionsReached",
        {"failed": 1},
        id="first-rule-that-matches-holds",
    ),
    pytest.param(
        {"podFailurePolicy": policy(IGNORE_42), "backoffLimit": 0},
        once(0, 42),
        "Complete",
        "CompletionsReached",
        {"succeeded": 2},
        id="ignored-is-not-counted",
    ),
    pytest.param(
        {"activeDeadlineSeconds": 60},
        by_index({}, other=None),
        "Failed",
        "DeadlineExceeded",
        {},
        id="too-long",
    ),
]


@pytest.mark.parametrize(("spec", "ending", "condition", "reason", "status"), ENDS)
def test_a_job_ends_as_its_pods_and_policies_say(
    make_cluster, job, spec, ending, condition, reason, status
) -> None:
    cluster = make_cluster(ending=ending)
    cluster.create_job(job(**spec))

    cluster.wait(120)

    found = cluster.job()
    assert cluster.conditions(found)[condition] == reason
    assert {name: found["status"].get(name) for name in status} == status
    assert "active" not in found["status"]
    assert ("completionTime" in found["status"]) is (condition == "Complete")
    assert reason in (*cluster.reasons("j"), "CompletionsReached")


def test_indexed_pods_know_their_index_and_their_name(cluster, job) -> None:
    env = [{"name": "SF_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
    cluster.create_job(job(pod={"container": {"env": env}}))
    cluster.wait(10)

    first, second = cluster.started()
    assert [first.env["JOB_COMPLETION_INDEX"], second.env["JOB_COMPLETION_INDEX"]] == ["0", "1"]
    assert first.env["SF_POD_UID"] == first.uid
    assert [first.hostname, second.hostname] == ["j-0", "j-1"]
    pod = cluster.pod(first.name)
    assert pod["metadata"]["name"].startswith("j-0-")
    assert len(pod["metadata"]["name"]) == len("j-0-abcde")
    label = "batch.kubernetes.io/job-completion-index"
    assert pod["metadata"]["labels"][label] == pod["metadata"]["annotations"][label] == "0"
    assert pod["metadata"]["labels"] | {"app": "a", "job-name": "j"} == pod["metadata"]["labels"]
    assert pod["metadata"]["ownerReferences"][0]["uid"] == cluster.job()["metadata"]["uid"]
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]


def test_a_job_shows_its_pods_while_they_run(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({0: 0}, other=None))
    cluster.create_job(job())
    assert cluster.job()["status"] == {
        "startTime": "2026-03-01T12:00:00Z",
        "active": 2,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }

    cluster.wait(20)

    status = cluster.job()["status"]
    assert (status["active"], status["ready"], status["succeeded"], status["completedIndexes"]) == (
        1,
        1,
        1,
        "0",
    )


def test_counted_pods_are_held_back_no_longer(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({}))
    cluster.create_job(job())
    cluster.wait(20)

    assert [pod["metadata"].get("finalizers") for pod in cluster.pods()] == [None, None]


def test_no_more_pods_at_once_than_parallelism_says(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({}), takes=5)
    cluster.create_job(job(workers=5, parallelism=2))

    most = 0
    for _ in range(60):
        cluster.wait(1)
        most = max(most, cluster.job()["status"].get("active", 0))

    assert most == 2
    assert cluster.job()["status"]["completedIndexes"] == "0-4"


def test_retries_wait_longer_each_time(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({0: 1}))
    cluster.create_job(job(workers=1, backoffLimitPerIndex=3))

    born: list[Any] = []
    for _ in range(200):
        cluster.wait(1)
        born += [(event.name, cluster.now) for event in cluster.started()[len(born) :]]

    waits = [(later - earlier).total_seconds() for (_, earlier), (_, later) in itertools.pairwise(born)]
    # On top of each wait come scheduling, pulling, and the step in which the runner acts.
    assert [round(wait) for wait in waits] == [18, 28, 48]
    assert cluster.conditions(cluster.job())["Failed"] == "FailedIndexes"


def test_a_replacement_waits_until_the_last_pod_has_ended(make_cluster, job) -> None:
    cluster = make_cluster(obeys=False)
    cluster.create_job(job(workers=1, podReplacementPolicy="Failed"))
    cluster.wait(10)
    name = cluster.pods()[0]["metadata"]["name"]

    cluster.call("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    cluster.wait(5)
    assert [pod["metadata"]["name"] for pod in cluster.pods()] == [name]
    assert cluster.job()["status"]["terminating"] == 1

    cluster.wait(60)
    assert [pod["metadata"]["name"] == name for pod in cluster.pods()] == [False]


def test_by_default_a_replacement_does_not_wait(make_cluster, job) -> None:
    cluster = make_cluster(obeys=False)
    cluster.create_job(job(workers=1))
    cluster.wait(10)
    name = cluster.pods()[0]["metadata"]["name"]

    cluster.call("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    cluster.wait(12)

    assert len(cluster.pods()) == 2


def test_a_failed_job_ends_its_other_pods_before_it_says_so(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({0: 1}, other=None), obeys=False)
    cluster.create_job(job(backoffLimit=0))
    cluster.wait(10)

    assert cluster.conditions(cluster.job()) == {"FailureTarget": "BackoffLimitExceeded"}
    assert [kill.reason.value for kill in cluster.killed()] == ["deleted"]

    cluster.wait(60)
    assert cluster.conditions(cluster.job())["Failed"] == "BackoffLimitExceeded"


def test_the_deadline_counts_pods_that_wait(cluster, job) -> None:
    cluster.create_job(
        job(activeDeadlineSeconds=30, pod={"container": {"resources": {"requests": {"cpu": "64"}}}})
    )

    cluster.wait(29)
    assert cluster.conditions(cluster.job()) == {}
    cluster.wait(2)

    assert cluster.conditions(cluster.job())["Failed"] == "DeadlineExceeded"
    assert cluster.pods() == []


def test_a_finished_job_goes_after_its_time_with_its_pods(make_cluster, job) -> None:
    cluster = make_cluster(ending=by_index({}))
    cluster.create_job(job(ttlSecondsAfterFinished=30))
    cluster.wait(20)
    assert cluster.conditions(cluster.job())["Complete"]

    cluster.wait(60)

    assert cluster.call("GET", f"{JOBS}/j")[0] == 404
    assert cluster.pods() == []


def test_a_suspended_job_has_no_pods_until_it_goes_on(cluster, job) -> None:
    cluster.create_job(job(suspend=True, activeDeadlineSeconds=30))
    cluster.wait(60)
    assert cluster.pods() == []
    assert cluster.conditions(cluster.job()) == {"Suspended": "JobSuspended"}
    assert "startTime" not in cluster.job()["status"]

    merge = {"Content-Type": "application/merge-patch+json"}
    cluster.call("PATCH", f"{JOBS}/j", {"spec": {"suspend": False}}, headers=merge)
    cluster.wait(10)
    assert len(cluster.started()) == 2
    assert cluster.conditions(cluster.job()) == {}

    cluster.call("PATCH", f"{JOBS}/j", {"spec": {"suspend": True}}, headers=merge)
    cluster.wait(10)
    assert cluster.pods() == []
    assert cluster.conditions(cluster.job()) == {"Suspended": "JobSuspended"}
    assert {"Suspended", "Resumed"} <= set(cluster.reasons("j"))


def test_a_job_without_indexes_counts_pods(make_cluster, job) -> None:
    codes = iter([1, 0, 0, 0])
    cluster = make_cluster(ending=lambda _started: next(codes))
    cluster.create_job(job(workers=3, completionMode=None))

    cluster.wait(60)

    status = cluster.job()["status"]
    assert (status["succeeded"], status["failed"]) == (3, 1)
    assert "completedIndexes" not in status
    assert all("JOB_COMPLETION_INDEX" not in one.env for one in cluster.started())


def test_a_smaller_parallelism_ends_pods(cluster, job) -> None:
    cluster.create_job(job(workers=3))
    cluster.wait(10)

    merge = {"Content-Type": "application/merge-patch+json"}
    cluster.call("PATCH", f"{JOBS}/j", {"spec": {"parallelism": 1}}, headers=merge)
    cluster.wait(5)

    assert cluster.job()["status"]["active"] == 1
    assert len(cluster.killed()) == 2
