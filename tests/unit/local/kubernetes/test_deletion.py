"""Deletes: what is meant, what follows, and what is spared."""

from __future__ import annotations

import pytest

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def delete(cluster, path=f"{JOBS}/j", **options):
    return cluster.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **options})


def test_in_the_background_the_job_goes_and_its_pods_follow(cluster, job) -> None:
    uid = cluster.create_job(job())["metadata"]["uid"]
    cluster.wait(10)

    status, answer = delete(cluster, propagationPolicy="Background")

    assert (status, answer["status"]) == (200, "Success")
    assert answer["details"] == {"name": "j", "group": "batch", "kind": "jobs", "uid": uid}
    assert cluster.call("GET", f"{JOBS}/j")[0] == 404
    assert len(cluster.pods()) == 2
    cluster.wait(5)
    assert cluster.pods() == []
    assert len(cluster.killed()) == 2


def test_in_the_foreground_the_pods_go_first(make_cluster, job) -> None:
    cluster = make_cluster(obeys=False)
    cluster.create_job(job())
    cluster.wait(10)

    status, answer = delete(cluster, propagationPolicy="Foreground")

    assert (status, answer["metadata"]["finalizers"]) == (200, ["foregroundDeletion"])
    cluster.wait(25)
    assert "deletionTimestamp" in cluster.job()["metadata"]
    assert ["deletionTimestamp" in pod["metadata"] for pod in cluster.pods()] == [True, True]
    assert cluster.reasons("j").count("SuccessfulCreate") == 2
    assert len(cluster.started()) == 2
    cluster.wait(60)
    assert cluster.call("GET", f"{JOBS}/j")[0] == 404
    assert cluster.pods() == []


@pytest.mark.parametrize("options", [{"propagationPolicy": "Orphan"}, {"orphanDependents": True}, {}])
def test_orphaned_pods_stay_and_belong_to_nobody(cluster, job, options) -> None:
    cluster.create_job(job())
    cluster.wait(10)

    delete(cluster, **options)
    cluster.wait(60)

    assert cluster.call("GET", f"{JOBS}/j")[0] == 404
    assert [pod["status"]["phase"] for pod in cluster.pods()] == ["Running", "Running"]
    assert all({"ownerReferences", "finalizers"}.isdisjoint(pod["metadata"]) for pod in cluster.pods())


@pytest.mark.parametrize("where", ["body", "query"])
def test_options_may_come_in_the_query(cluster, job, where) -> None:
    cluster.create_job(job())
    cluster.wait(10)

    if where == "body":
        delete(cluster, propagationPolicy="Background")
    else:
        cluster.call("DELETE", f"{JOBS}/j", propagationPolicy="Background")
    cluster.wait(5)

    assert cluster.pods() == []


@pytest.mark.parametrize("what", ["uid", "resourceVersion"])
def test_a_precondition_spares_a_stranger_of_the_same_name(cluster, job, what) -> None:
    old = cluster.create_job(job())["metadata"][what]
    delete(cluster, propagationPolicy="Background")
    cluster.create_job(job())

    status, answer = delete(cluster, propagationPolicy="Background", preconditions={what: old})

    assert (status, answer["reason"]) == (409, "Conflict")
    assert "Precondition failed" in answer["message"]
    assert cluster.job()
    assert delete(cluster, preconditions={what: cluster.job()["metadata"][what]})[0] == 200


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"propagationPolicy": "Sideways"}, 422),
        ({"gracePeriodSeconds": "soon"}, 400),
        ({"gracePeriodSeconds": -1}, 400),
    ],
)
def test_options_that_make_no_sense_are_refused(cluster, job, options, code) -> None:
    cluster.create_job(job())

    assert delete(cluster, **options)[0] == code
    assert cluster.job()


def test_many_go_by_their_labels_and_others_stay(cluster, job) -> None:
    for name, nonce in (("a", "1"), ("b", "1"), ("c", "2")):
        cluster.create_job(
            {**job(), "metadata": {"name": name, "labels": {"sf-nonce": nonce, "sf-plane": "main"}}}
        )
    cluster.wait(10)

    options = {"propagationPolicy": "Background"}
    status, answer = cluster.call("DELETE", JOBS, options, labelSelector="sf-nonce=1,sf-plane=main")

    assert (status, answer["kind"], len(answer["items"])) == (200, "JobList", 2)
    cluster.wait(10)
    assert [one["metadata"]["name"] for one in cluster.call("GET", JOBS)[1]["items"]] == ["c"]


def test_a_delete_of_nothing_by_label_is_no_fault(cluster) -> None:
    status, answer = cluster.call("DELETE", JOBS, labelSelector="sf-nonce=1")

    assert (status, answer["items"]) == (200, [])


def test_a_pod_that_ended_goes_at_once(make_cluster, pod) -> None:
    cluster = make_cluster(ending=lambda _started: 0)
    cluster.create_pod(pod())
    cluster.wait(10)

    assert cluster.call("DELETE", f"{PODS}/p")[0] == 200
    assert cluster.call("GET", f"{PODS}/p")[0] == 404


def test_a_finalizer_of_somebody_else_holds_an_object_back(cluster, job) -> None:
    cluster.create_job({**job(), "metadata": {"name": "j", "finalizers": ["example.org/wait"]}})
    delete(cluster, propagationPolicy="Background")
    assert "deletionTimestamp" in cluster.job()["metadata"]

    patch = {"Content-Type": "application/merge-patch+json"}
    cluster.call("PATCH", f"{JOBS}/j", {"metadata": {"finalizers": None}}, headers=patch)

    assert cluster.call("GET", f"{JOBS}/j")[0] == 404


def test_what_names_an_owner_that_is_not_there_is_collected(cluster, pod) -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    cluster.create_pod(pod(metadata={"ownerReferences": [owner]}))
    cluster.wait(5)

    assert cluster.pods() == []


def test_a_namespace_is_emptied_before_it_goes(make_cluster, job) -> None:
    cluster = make_cluster(obeys=False)
    cluster.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})
    where = "/apis/batch/v1/namespaces/other/jobs"
    assert cluster.call("POST", where, job())[0] == 201
    cluster.wait(10)

    cluster.call("DELETE", "/api/v1/namespaces/other")
    cluster.wait(5)
    assert cluster.call("GET", "/api/v1/namespaces/other")[1]["status"]["phase"] == "Terminating"
    status, answer = cluster.call("POST", where, job("late"))
    assert (status, answer["reason"]) == (403, "Forbidden")

    cluster.wait(60)
    assert cluster.call("GET", "/api/v1/namespaces/other")[0] == 404
    assert cluster.core.leftovers().pods == ()


def test_leftovers_are_named(cluster, job) -> None:
    cluster.create_job(job())

    left = cluster.core.leftovers()
    assert left.jobs == ("default/j",)
    assert [name.startswith("default/j-") for name in left.pods] == [True, True]

    delete(cluster, propagationPolicy="Background")
    cluster.wait(10)
    assert cluster.core.leftovers().jobs == cluster.core.leftovers().pods == ()
