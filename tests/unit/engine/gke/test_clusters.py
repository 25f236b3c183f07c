"""A message names a cluster that stands: it is looked up, and only read; who names none, or too many, is told what to write."""

from __future__ import annotations

import pytest

from runtender.engine.clusters import known_clusters, read_clusters
from runtender.errors import Rejected, Retryable
from runtender.forecast.gke_run import ClusterName
from runtender.local.container.clusters import GkeCluster, Status
from runtender.local.http import Fault, HttpResponse, google_error

GET = "container.projects.locations.clusters.get"
LIST = "container.projects.locations.clusters.list"
HOME = "us-central1"


def put(world, name="mine", location=HOME, **changes):
    known = {"born": world.clock.now(), "dns_endpoint": "standing.gke", **changes}
    world.gke.put(GkeCluster(name=name, location=location, **known))


def look(world, name="mine", location=None):
    named = ClusterName(name, location)
    return read_clusters(world.plane.settings, world.plane.apis["gke"], [named])[named]


def refusal(world, name="mine", location=None):
    with pytest.raises(Rejected) as refused:
        look(world, name, location)
    (fault,) = refused.value.faults
    assert fault.field == "compute.gke_cluster_name"
    assert fault.remedy
    return fault.problem


def test_a_name_is_looked_for_at_home_first(gke):
    put(gke)
    put(gke, location="europe-west1")
    assert look(gke).location == HOME
    assert gke.gke.counts().keys() == {GET}


def test_a_name_with_its_place_is_looked_for_there_alone(gke):
    put(gke, location="europe-west1")
    assert look(gke, location="europe-west1").full_name == "projects/p/locations/europe-west1/clusters/mine"
    assert refusal(gke, location="europe-west4") == "cluster 'mine': there is none in europe-west4"
    assert LIST not in gke.gke.counts()


def test_a_name_that_is_not_at_home_is_looked_for_everywhere(gke):
    put(gke, location="us-east1-b")
    put(gke, "another", location="europe-west1")
    assert look(gke).location == "us-east1-b"
    assert gke.gke.counts().keys() == {GET, LIST}, "nothing but reads"


def test_a_name_that_stands_in_several_places_is_nobodys_to_choose(gke):
    put(gke, location="us-east1-b")
    put(gke, location="europe-west1")
    assert refusal(gke) == "cluster 'mine': stands in europe-west1, us-east1-b"


def test_a_name_that_stands_nowhere_is_refused(gke):
    assert refusal(gke) == "cluster 'mine': there is none in project p"


def test_a_place_that_did_not_answer_may_be_where_it_stands(gke):
    put(gke, location="us-east1-b")
    gke.gke.silence(["us-west1-a"])
    with pytest.raises(Retryable, match="us-west1-a"):
        look(gke)


@pytest.mark.parametrize("status", [Status.PROVISIONING, Status.STOPPING, Status.ERROR])
def test_one_that_takes_no_job_is_refused(gke, status):
    put(gke, status=status)
    assert refusal(gke) == f"cluster 'mine': is {status}"


@pytest.mark.parametrize("status", [Status.RUNNING, Status.RECONCILING, Status.DEGRADED])
def test_one_that_is_being_mended_takes_jobs(gke, status):
    put(gke, status=status)
    assert look(gke).status == status


def test_one_that_cannot_be_reached_is_refused(gke):
    put(gke, dns_endpoint="", endpoint="")
    assert refusal(gke) == "cluster 'mine': is RUNNING"


def test_its_version_is_what_kubernetes_itself_tells(gke):
    put(gke, minor=29)
    assert look(gke).server_minor == 34


def denied(reason, word):
    return Fault(answer=google_error(403, reason, "no", word=word))


@pytest.mark.parametrize(
    "answer",
    [
        Fault(answer=HttpResponse(status=0)),
        Fault(answer=HttpResponse(status=503)),
        Fault(answer=google_error(429, "rateLimitExceeded", "slow down", word="RESOURCE_EXHAUSTED")),
        denied("rateLimitExceeded", "PERMISSION_DENIED"),
    ],
    ids=["no answer", "503", "429", "403 for too many calls"],
)
@pytest.mark.parametrize("method", [GET, LIST, "kubernetes.version.get"])
def test_an_answer_that_will_pass_is_waited_for(gke, method, answer):
    put(gke, location=HOME if method != LIST else "us-east1-b")
    gke.faults[method] = (answer, 0)
    with pytest.raises(Retryable):
        look(gke)


@pytest.mark.parametrize("method", [GET, LIST])
def test_a_permission_that_is_missing_is_said(gke, method):
    put(gke, location=HOME if method != LIST else "us-east1-b")
    gke.faults[method] = (denied("forbidden", "PERMISSION_DENIED"), 0)
    assert f"{method} answered 403" in refusal(gke)


class TestRemembered:
    def test_a_cluster_that_was_given_a_job_is_looked_at_by_ticks(self, gke):
        assert known_clusters(gke.plane) == ()
        gke.submit()
        gke.submit(force=False, config={**gke.config, "run_name": "other"})
        full_name = "projects/p/locations/us-central1-a/clusters/standing"
        assert known_clusters(gke.plane) == (full_name,)
        document = gke.base.document("clusters/us-central1-a_standing")
        assert (document["name"], document["jobs"]) == (full_name, 2)
        assert document["expires_at"] > gke.clock.now()

    def test_one_that_refused_a_submit_is_not(self, gke):
        gke.gke.remove("us-central1-a", "standing")
        receipt = gke.base.send({"config": gke.config}, "m-1")
        assert (receipt.state, len(receipt.errors)) == ("rejected", 1)
        assert "'standing'" in receipt.errors[0]
        assert known_clusters(gke.plane) == ()
