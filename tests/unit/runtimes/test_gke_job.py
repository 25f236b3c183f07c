"""The GKE runtime: from nouns to calls of GKE and Kubernetes, and from their answers to what was observed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.model import Reason, Scope, Verdict
from runtender.observed import (
    Absent,
    Accepted,
    DeleteAnswer,
    Fate,
    NameTaken,
    OperationSeen,
    PodsSeen,
    Present,
    Refusal,
    Unclear,
    WorkersVerdict,
)
from runtender.ports import ApiAnswer, Podded, Runtime
from runtender.runtimes.cluster import get_cluster, list_clusters, version_of
from runtender.runtimes.gke_body import indexed_job
from runtender.runtimes.gke_job import METHODS, GkeJob

GKE: Runtime = GkeJob()
PODS: Podded = GkeJob()

CLUSTER = "projects/p/locations/us-central1/clusters/my-gke"
JOBS = "/apis/batch/v1/namespaces/forecasting-ns/jobs"
CORE = "/api/v1/namespaces/forecasting-ns"


@pytest.fixture
def tried(standing):
    """One try: its job, its row, the settings."""
    bearing = standing()
    return bearing.job, bearing.row, bearing.settings


@pytest.fixture
def known(tried):
    """The same, once an answer has told the Job's uid."""
    job, row, settings = tried
    return job, replace(row, target_id="u-1"), settings


@pytest.fixture
def ours(tried):
    _, row, settings = tried
    return f"sf-nonce={row.nonce},sf-plane={settings.plane_id}"


def status(code, reason="", message="", **details):
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}
    return ApiAnswer(status=code, body=body | ({"details": details} if details else {}), text="{...}")


def read(code, body):
    return ApiAnswer(status=code, body=body)


def calls(known):
    (pods,) = GKE.remains(*known)
    return {
        "create": GKE.create(*known),
        "look": GKE.look(*known),
        "delete": GKE.delete(*known),
        "remains look": pods.look,
        "remains delete": pods.delete,
        "pods": PODS.pods(*known),
        "events": PODS.events(*known),
        "log": PODS.pod_log(known[0], known[1], "sf-a-3-xyz", known[2]),
    }


def test_the_list_of_methods_is_what_is_called(known, tried):
    settings = known[2]
    others = [
        GKE.delete(*tried),
        *GKE.fleets(settings, [CLUSTER]),
        get_cluster("p", "us-central1", "my-gke"),
        list_clusters("p"),
        version_of(CLUSTER),
    ]
    called = {request.method_id for request in [*calls(known).values(), *others]}
    assert tuple(sorted(called)) == METHODS


def test_every_call_goes_to_the_cluster_and_namespace_of_the_plan(known):
    for request in calls(known).values():
        assert request.cluster == CLUSTER
        assert request.path.startswith((JOBS, CORE))


def test_only_the_create_makes_something_and_a_field_that_is_not_known_is_refused(known):
    made = [name for name, request in calls(known).items() if request.creates]
    create = calls(known)["create"]
    assert made == ["create"]
    assert (create.verb, create.path, create.query) == ("POST", JOBS, {"fieldValidation": "Strict"})


def test_a_repeated_create_is_the_same_call(standing, tried):
    assert GKE.create(*tried) == GKE.create(*tried)
    assert GKE.create(*tried).body == indexed_job(standing())


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        pytest.param(read(201, {"metadata": {"uid": "u-1"}}), Accepted(target_id="u-1"), id="made"),
        pytest.param(
            status(409, "AlreadyExists", 'jobs.batch "sf-a" already exists'), NameTaken(), id="acceptance-Z13"
        ),
        pytest.param(
            status(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"'),
            Refusal(
                verdict=Verdict.RETRY,
                scope=Scope.ZONE,
                code="Conflict",
                message='Operation cannot be fulfilled on resourcequotas "q"',
            ),
            id="two writers of a quota's count",
        ),
        pytest.param(
            status(403, "Forbidden", "exceeded quota: jobs"),
            Refusal(
                verdict=Verdict.HARD_CEILING,
                scope=Scope.ZONE,
                code="ExceededQuota",
                message="exceeded quota: jobs",
            ),
            id="quota",
        ),
        pytest.param(
            status(429, "TooManyRequests", "slow down", retryAfterSeconds=7),
            Refusal(
                verdict=Verdict.RATE_LIMITED,
                scope=Scope.PROJECT,
                code="TooManyRequests",
                message="slow down",
                retry_after_s=7,
            ),
            id="too many requests",
        ),
        pytest.param(status(503, message="busy"), Unclear(detail="HTTP 503: busy"), id="unavailable"),
        pytest.param(
            status(504, "Timeout", "slow"), Unclear(detail="HTTP 504: slow"), id="it may have been taken"
        ),
        pytest.param(
            ApiAnswer(status=0, text="ConnectionError"),
            Unclear(detail="HTTP 0: ConnectionError"),
            id="no answer",
        ),
    ],
)
def test_the_answer_to_a_create_says_what_became_of_it(answer, meaning):
    assert GKE.created(answer) == meaning


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (400, "BadRequest"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (404, "NotFound"),
        (404, "ClusterNotFound"),
        (422, "Invalid"),
    ],
)
def test_a_request_that_cannot_be_served_is_a_fault_in_the_apis_own_words(code, reason):
    assert GKE.created(status(code, reason, "the words")) == Refusal(
        verdict=Verdict.CONFIG_FAULT, scope=Scope.PROJECT, code=reason, message="the words"
    )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(status(503, message="busy"), id="acceptance-Z15 503"),
        pytest.param(ApiAnswer(status=0, text="ReadTimeout"), id="acceptance-Z15 no answer"),
        pytest.param(status(401, "Unauthorized"), id="401"),
        pytest.param(status(403, "Forbidden"), id="403"),
        pytest.param(status(429, "TooManyRequests"), id="429"),
        pytest.param(ApiAnswer(status=404, text="<html>not here</html>"), id="a proxy's 404"),
        pytest.param(read(200, {}), id="nothing in it"),
    ],
)
def test_what_could_not_be_read_is_no_observation(answer):
    assert GKE.looked(answer) is None
    assert GKE.operated(answer) is None


@pytest.mark.parametrize("reason", ["NotFound", "ClusterNotFound"])
def test_a_job_is_absent_when_kubernetes_or_gke_says_so(reason):
    assert GKE.looked(status(404, reason)) == Absent()


def a_job_document(nonce, **changes):
    labels = {"sf-nonce": nonce, "sf-key": "k", "sf-plane": "main"}
    return {"metadata": {"uid": "u-1", "labels": labels}, "spec": {"completions": 2}, **changes}


def test_a_job_that_is_there_is_told_by_its_labels_and_uid(tried):
    _, row, _ = tried
    sight = GKE.looked(read(200, a_job_document(row.nonce, status={"active": 2})))
    assert isinstance(sight, Present)
    assert (sight.uid, sight.nonce, sight.plane) == ("u-1", row.nonce, "main")
    assert sight.workers is not None
    assert sight.workers.verdict is WorkersVerdict.RUNNING


@pytest.mark.parametrize("nonce", [pytest.param("another-try", id="acceptance-Z13")])
def test_a_finished_job_of_the_same_name_shows_whose_it_is(tried, nonce):
    _, row, _ = tried
    done = a_job_document(
        nonce, status={"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}
    )
    sight = GKE.looked(read(200, done))
    assert isinstance(sight, Present)
    assert sight.nonce != row.nonce


@pytest.mark.parametrize("reason", [pytest.param(Reason.JOB_DELETED, id="acceptance-Z14")])
def test_a_job_that_vanished_was_deleted(tried, reason):
    job, row, settings = tried
    assert GKE.fate(job, row, settings) is None
    assert GKE.fated(row, []) == Fate(reason=reason, deleted=True)


def test_a_job_has_no_console_and_no_operation_of_its_own(known):
    assert GKE.serial(*known) is None
    assert GKE.last_words(read(200, {}), known[1]) is None
    assert GKE.operation(*known) == GKE.look(*known)
    assert GKE.operated(status(404, "NotFound")) == OperationSeen(done=True)


def test_a_delete_carries_the_uid_so_that_it_hits_no_namesake(known):
    request = GKE.delete(*known)
    assert (request.method_id, request.verb) == ("kubernetes.jobs.delete", "DELETE")
    assert request.path == f"{JOBS}/{known[1].name}"
    assert request.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u-1"},
    }


def test_a_delete_without_a_uid_goes_by_our_labels(tried, ours):
    request = GKE.delete(*tried)
    assert (request.method_id, request.path) == ("kubernetes.jobs.deletecollection", JOBS)
    assert request.query == {"labelSelector": ours}
    assert request.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
    }


@pytest.mark.parametrize(
    ("answer", "meaning"),
    [
        pytest.param(
            read(200, {"kind": "Status", "status": "Success"}), DeleteAnswer(accepted=True), id="taken"
        ),
        pytest.param(read(202, {}), DeleteAnswer(accepted=True), id="under way"),
        pytest.param(status(404, "NotFound"), DeleteAnswer(gone=True), id="not there"),
        pytest.param(
            status(409, "Conflict", "Precondition failed: UID in precondition: u-1, UID in object meta: u-2"),
            DeleteAnswer(gone=True),
            id="another's by now",
        ),
        pytest.param(
            status(409, "Conflict", "the object has been modified"),
            DeleteAnswer(detail="HTTP 409: the object has been modified"),
            id="somebody wrote to it",
        ),
        pytest.param(
            status(403, "Forbidden", "cannot delete"),
            DeleteAnswer(detail="HTTP 403: cannot delete"),
            id="refused",
        ),
        pytest.param(
            ApiAnswer(status=404, text="<html>"), DeleteAnswer(detail="HTTP 404: <html>"), id="a proxy's 404"
        ),
    ],
)
def test_the_answer_to_a_delete_says_whether_it_is_gone(answer, meaning):
    assert GKE.deleted(answer) == meaning


def test_a_row_covers_its_pods(known, ours):
    (pods,) = GKE.remains(*known)
    assert (pods.kind, pods.is_list) == ("pods", True)
    assert (pods.look.path, pods.look.query) == (f"{CORE}/pods", {"labelSelector": ours, "limit": "1"})
    assert (pods.delete.verb, pods.delete.path, pods.delete.query) == (
        "DELETE",
        f"{CORE}/pods",
        {"labelSelector": ours},
    )


def test_a_placement_is_described_so_that_others_find_it(known):
    told = GKE.describe(*known)
    job, row, _ = known
    assert told["probe_handle"] == {
        "runtime": "gke",
        "native_id": row.name,
        "region": "us-central1",
        "id_kind": "exact",
        "resource_name": f"{CLUSTER}/namespaces/forecasting-ns/jobs/{row.name}",
    }
    plan = told["gke_job"]
    assert (plan["job_name"], plan["gke_mode"], plan["worker_count"]) == (row.name, "job", 2)
    assert (plan["cluster_name"], plan["cluster_location"], plan["ephemeral_cluster"]) == (
        "my-gke",
        "us-central1",
        False,
    )
    assert plan["resource_plan"] == job.plan.resource_plan


def test_a_fleet_is_the_planes_jobs_of_each_cluster(known):
    settings = known[2]
    other = "projects/p/locations/us-east1/clusters/other"
    requests = GKE.fleets(settings, [CLUSTER, other])
    assert [request.cluster for request in requests] == [CLUSTER, other]
    assert {request.path for request in requests} == {"/apis/batch/v1/jobs"}
    assert requests[0].query == {"labelSelector": "sf-plane=main,sf-kind=job", "limit": "100"}
    assert (GKE.page_key, GKE.fleets(settings, [])) == ("continue", ())


def test_a_page_of_the_fleet_that_could_not_be_read_is_none(tried):
    _, row, _ = tried
    listing = {"metadata": {"continue": "c"}, "items": [a_job_document(row.nonce)]}
    page = GKE.fleet_page(read(200, listing))
    assert page is not None
    assert ([worker.sight.nonce for worker in page.workers], page.next_page) == ([row.nonce], "c")
    assert GKE.fleet_page(status(410, "Expired")) is None


def test_pods_and_warnings_are_asked_for_page_by_page_and_a_log_by_its_end(known, ours):
    asked = calls(known)
    assert (asked["pods"].path, asked["pods"].query) == (
        f"{CORE}/pods",
        {"labelSelector": ours, "limit": "100"},
    )
    assert asked["events"].query == {"fieldSelector": "type=Warning", "limit": "500"}
    assert asked["log"].path == f"{CORE}/pods/sf-a-3-xyz/log"
    assert (asked["log"].query["container"], asked["log"].query["tailLines"]) == ("worker", "60")


NO_EVENTS = read(200, {"items": []})


def page(*uids, more=""):
    items = [{"metadata": {"uid": uid, "name": uid}, "status": {"phase": "Running"}} for uid in uids]
    return read(200, {"metadata": {"continue": more}, "items": items})


def test_pods_of_all_pages_are_read(tried):
    seen = PODS.podded(tried[1], [page("a", more="c"), page("b")], NO_EVENTS)
    assert seen is not None
    assert [pod.name for pod in seen.pods] == ["a", "b"]
    assert PODS.podded(tried[1], [page()], NO_EVENTS) == PodsSeen()


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([], id="none was asked for"),
        pytest.param([page("a", more="c")], id="the last one is missing"),
        pytest.param([page("a", more="c"), status(410, "Expired")], id="one could not be read"),
    ],
)
def test_pods_are_seen_only_where_every_page_was_read(tried, pages):
    assert PODS.podded(tried[1], pages, NO_EVENTS) is None


def test_pods_are_seen_without_warnings_that_could_not_be_read(tried):
    assert PODS.podded(tried[1], [page("a")], status(403, "Forbidden")) is not None


def test_a_job_that_was_not_planned_for_kubernetes_is_a_bug(a_job, a_row, settings):
    with pytest.raises(ValueError, match="not planned for Kubernetes"):
        GKE.look(a_job(), a_row(), settings)
