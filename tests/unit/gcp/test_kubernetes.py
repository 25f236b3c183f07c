"""Calls of GKE and of clusters' Kubernetes APIs, over real TLS with authorities made for the test."""

from __future__ import annotations

import base64
import ssl
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import requests

from runtender.gcp.kubernetes import SCOPES, GkeApi, google_sessions
from runtender.gcp.session import plain_session
from runtender.gcp.trust import trusting
from runtender.local.http import DROPPED, HttpResponse, LocalAuthority, json_response, serve
from runtender.ports import ApiRequest

CLUSTER = "projects/p/locations/us-central1/clusters/my-gke"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
GET = ApiRequest(method_id="kubernetes.jobs.get", verb="GET", path=f"{JOBS}/sf-a", cluster=CLUSTER)
CREATE = ApiRequest(
    method_id="kubernetes.jobs.create",
    verb="POST",
    path=JOBS,
    query={"fieldValidation": "Strict"},
    body={"kind": "Job"},
    creates=True,
    cluster=CLUSTER,
)
LOG = ApiRequest(
    method_id="kubernetes.pods.log.get",
    verb="GET",
    path="/api/v1/namespaces/default/pods/a/log",
    cluster=CLUSTER,
)
JOB = json_response(200, {"kind": "Job"})


class CountedAuthority(LocalAuthority):
    """An authority whose server counts the handshakes that clients begin."""

    def server_context(self) -> ssl.SSLContext:
        context = super().server_context()
        context.sni_callback = lambda *_: HANDSHAKES.append(1)
        return context


HANDSHAKES: list[int] = []


@pytest.fixture(scope="module")
def authorities(tmp_path_factory):
    """Two authorities that know nothing of each other."""
    make = CountedAuthority.create
    return make(tmp_path_factory.mktemp("own")), make(tmp_path_factory.mktemp("other"))


@pytest.fixture
def own(authorities):
    return authorities[0]


@pytest.fixture
def other(authorities):
    return authorities[1]


@dataclass
class Cluster:
    """A Kubernetes API over TLS that gives its answers one after the other, the last one for ever."""

    port: int = 0
    answers: list[HttpResponse] = field(default_factory=lambda: [JOB])
    requests: list = field(default_factory=list)

    def handle(self, request):
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def cluster(own):
    HANDSHAKES.clear()
    cluster = Cluster()
    with serve(cluster.handle, tls=own) as server:
        cluster.port = server.port
        yield cluster


def pem(authority):
    return authority.ca_file.read_text(encoding="ascii")


def at_address(port, authority=None):
    """What the GKE API says of a cluster that is reached at an address."""
    master = {"clusterCaCertificate": base64.b64encode(pem(authority).encode()).decode()} if authority else {}
    return json_response(200, {"status": "RUNNING", "endpoint": f"127.0.0.1:{port}", "masterAuth": master})


def by_name(port, authority):
    """The same of one that is reached by name; the address and its authority are there, too."""
    body = at_address(port, authority).json()
    dns = {"endpoint": f"localhost:{port}", "allowExternalTraffic": True}
    return json_response(200, {**body, "controlPlaneEndpointsConfig": {"dnsEndpointConfig": dns}})


@pytest.fixture
def api(service, clock):
    def make(**changes):
        return GkeApi(f"{service.url}/v1", **{"clock": clock, "sessions": plain_session, **changes})

    return make


def test_a_call_without_a_cluster_goes_to_gke(service, api):
    service.answers = [json_response(200, {"clusters": []})]
    listing = ApiRequest(
        method_id="container.projects.locations.clusters.list",
        verb="GET",
        path="/projects/p/locations/-/clusters",
    )
    assert api().send(listing).body == {"clusters": []}
    assert service.requests[0].path == "/v1/projects/p/locations/-/clusters"


def test_a_call_with_a_cluster_goes_where_gke_says_that_it_is(service, api, own, cluster):
    service.answers = [at_address(cluster.port, own)]
    cluster.answers = [json_response(201, {"metadata": {"uid": "u-1"}})]
    answer = api().send(CREATE)
    assert (answer.status, answer.body) == (201, {"metadata": {"uid": "u-1"}})
    assert service.requests[0].path == f"/v1/{CLUSTER}"
    (request,) = cluster.requests
    assert (request.method, request.path, request.query) == ("POST", JOBS, {"fieldValidation": "Strict"})
    assert (request.json(), request.headers["Content-Type"]) == ({"kind": "Job"}, "application/json")


def test_calls_of_google_are_signed_for_a_clusters_bindings_too(
    service, clock, own, cluster, credentials, tokens
):
    service.answers = [at_address(cluster.port, own)]
    api = GkeApi(f"{service.url}/v1", clock=clock, sessions=google_sessions)
    assert api.send(GET).ok
    assert tokens["scopes"] == set(SCOPES)
    assert SCOPES[1].endswith("/auth/userinfo.email")
    asked = [*service.requests, *cluster.requests]
    assert all(request.headers["Authorization"].startswith("Bearer token-") for request in asked)


def refused(answer, cluster):
    """True where the connection did not come about for want of trust, and nothing was said over it."""
    return answer.status == 0 and "certificate verify failed" in answer.text and not cluster.requests


def test_an_address_with_another_authoritys_certificate_is_refused(service, api, other, cluster):
    service.answers = [at_address(cluster.port, other)]
    assert refused(api().send(CREATE), cluster)


def test_an_address_without_an_authority_is_refused_and_not_called(service, api, cluster):
    service.answers = [at_address(cluster.port)]
    answer = api().send(GET)
    assert (answer.status, cluster.requests, HANDSHAKES) == (0, [], [])
    assert "cannot be verified" in answer.text


@pytest.mark.parametrize(
    "authority",
    [
        pytest.param("not base64!", id="not base64"),
        pytest.param(base64.b64encode(b"no certificate").decode(), id="no certificate"),
        pytest.param(base64.b64encode(b"\xff\xfe").decode(), id="no text"),
    ],
)
def test_an_authority_that_cannot_be_read_is_as_good_as_none(service, api, cluster, authority):
    body = at_address(cluster.port).json() | {"masterAuth": {"clusterCaCertificate": authority}}
    service.answers = [json_response(200, body)]
    answer = api().send(GET)
    assert (answer.status, cluster.requests, HANDSHAKES) == (0, [], [])
    assert "read" in answer.text


def test_an_address_is_trusted_by_no_root_but_its_own(service, api, own, other, cluster, monkeypatch):
    service.answers = [at_address(cluster.port, other)]
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(own.ca_file))

    def careless(https):
        session = requests.Session()
        session.verify = False
        if https is not None:
            session.mount("https://", https)
        return session

    assert refused(api(sessions=careless, roots=pem(own)).send(GET), cluster)


def test_a_name_is_trusted_by_the_roots_that_are_set(service, api, own, other, cluster):
    service.answers = [by_name(cluster.port, other)]
    assert api(roots=pem(own)).send(GET).ok
    assert cluster.requests[0].headers["Host"] == f"localhost:{cluster.port}"


def test_a_name_is_never_trusted_by_the_clusters_own_authority(service, api, own, other, cluster):
    service.answers = [by_name(cluster.port, own)]
    assert refused(api(roots=pem(other)).send(GET), cluster)
    assert refused(api().send(GET), cluster)


def test_a_name_is_trusted_by_the_systems_roots_where_none_are_set(
    service, api, own, other, cluster, monkeypatch
):
    service.answers = [by_name(cluster.port, other)]

    def of_the_system(https):
        assert https is None
        return requests.Session()

    assert refused(api(sessions=of_the_system).send(GET), cluster)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(own.ca_file))
    assert api(sessions=of_the_system).send(GET).ok


def test_a_certificate_for_another_host_is_refused(service, api, tmp_path, clock):
    elsewhere = Cluster()
    authority = LocalAuthority.create(tmp_path, hosts=["elsewhere.example"])
    with serve(elsewhere.handle, tls=authority) as server:
        service.answers = [by_name(server.port, authority)]
        assert refused(api(roots=pem(authority)).send(GET), elsewhere)


def test_no_certificate_is_left_on_the_disk(service, api, own, cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    service.answers = [at_address(cluster.port, own)]
    assert api().send(GET).ok
    assert list(tmp_path.iterdir()) == []


def test_no_certificate_is_none_to_trust():
    with pytest.raises(ValueError, match="no certificate"):
        trusting("")


def looks_for_cluster(service):
    return [request.path for request in service.requests]


def test_where_a_cluster_is_is_asked_once_in_five_minutes(service, api, clock, own, cluster):
    service.answers = [at_address(cluster.port, own)]
    gke = api()
    for _ in range(3):
        assert gke.send(GET).ok
    assert (len(looks_for_cluster(service)), len(HANDSHAKES)) == (1, 1), "and over one connection"
    clock.sleep(300)
    assert gke.send(GET).ok
    assert (len(looks_for_cluster(service)), len(HANDSHAKES)) == (2, 1), "which outlives the question"


def test_who_has_looked_a_cluster_up_calls_it_without_a_further_question(service, api, own, cluster):
    service.answers = [at_address(cluster.port, own)]
    gke = api()
    look = ApiRequest(
        method_id="container.projects.locations.clusters.get", verb="GET", path=f"/{GET.cluster}"
    )
    assert gke.send(look).body["status"] == "RUNNING"
    assert gke.send(GET).ok
    assert len(looks_for_cluster(service)) == 1


@pytest.mark.parametrize(
    ("trouble", "looks"),
    [
        pytest.param(HttpResponse(status=401), 2, id="401"),
        pytest.param(DROPPED, 2, id="no answer"),
        pytest.param(HttpResponse(status=404, body=b"<html>"), 2, id="somebody else's 404"),
        pytest.param(json_response(404, {"kind": "Status", "reason": "NotFound"}), 1, id="404"),
        pytest.param(json_response(403, {"kind": "Status", "reason": "Forbidden"}), 1, id="403"),
        pytest.param(HttpResponse(status=503), 1, id="503"),
        pytest.param(HttpResponse(status=429), 1, id="429"),
    ],
)
def test_a_cluster_is_looked_for_again_once_its_place_is_in_doubt(service, api, own, cluster, trouble, looks):
    service.answers = [at_address(cluster.port, own)]
    cluster.answers = [trouble, JOB]
    gke = api()
    assert gke.send(CREATE).status == trouble.status
    assert gke.send(GET).ok
    assert len(looks_for_cluster(service)) == looks


def test_a_new_authority_is_known_after_one_call_that_failed(service, api, own, other, cluster):
    service.answers = [at_address(cluster.port, other), at_address(cluster.port, own)]
    gke = api()
    assert gke.send(CREATE).status == 0
    assert gke.send(CREATE).ok


def test_a_cluster_that_is_gone_is_a_404_in_kubernetes_form(service, api):
    service.answers = [json_response(404, {"error": {"code": 404, "message": "Not found: my-gke."}})]
    answer = api().send(GET)
    assert (answer.status, answer.body["kind"], answer.body["reason"]) == (404, "Status", "ClusterNotFound")
    assert answer.body["message"] == f"{CLUSTER} was not found out: Not found: my-gke."


@pytest.mark.parametrize(
    ("status", "words"),
    [(403, "container.clusters.get denied"), (429, "slow down"), (503, "unavailable")],
)
def test_a_cluster_that_cannot_be_looked_up_is_refused_as_gke_refuses(service, api, cluster, status, words):
    service.answers = [json_response(status, {"error": {"message": words}})]
    answer = api().send(CREATE)
    assert (answer.status, cluster.requests) == (status, [])
    assert words in answer.body["message"]


def test_too_many_calls_to_gke_are_no_lack_of_rights(service, api, cluster):
    errors = [{"reason": "rateLimitExceeded", "domain": "usageLimits"}]
    service.answers = [json_response(403, {"error": {"code": 403, "message": "Quota", "errors": errors}})]
    answer = api().send(CREATE)
    assert (answer.status, answer.body["code"], cluster.requests) == (429, 429, [])


def test_a_cluster_without_an_endpoint_is_no_answer_that_says_why(service, api):
    service.answers = [json_response(200, {"status": "PROVISIONING"})]
    answer = api().send(GET)
    assert (answer.status, answer.ok) == (0, False)
    assert "no endpoint (status PROVISIONING)" in answer.text


@pytest.mark.parametrize("trouble", [DROPPED, HttpResponse(status=500), HttpResponse(status=503)], ids=str)
def test_a_read_is_repeated_until_the_trouble_has_passed(service, api, clock, own, cluster, trouble):
    service.answers = [at_address(cluster.port, own)]
    cluster.answers = [trouble, trouble, JOB]
    assert api().send(GET).ok
    assert clock.sleeps == [0.5, 1.0]


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_a_create_is_sent_once_whatever_comes_back(service, api, clock, own, cluster, status):
    service.answers = [at_address(cluster.port, own)]
    cluster.answers = [HttpResponse(status=status, headers={"Retry-After": "5"})]
    answer = api().send(CREATE)
    assert (answer.status, answer.retry_after_s) == (status, 5.0)
    assert (len(cluster.requests), clock.sleeps) == (1, [])


def test_a_log_is_the_text_of_the_answer(service, api, own, cluster):
    service.answers = [at_address(cluster.port, own)]
    cluster.answers = [HttpResponse(status=200, body="line 1\nZeile 2: ä\n".encode())]
    answer = api().send(LOG)
    assert (answer.text, answer.body) == ("line 1\nZeile 2: ä\n", {})


def test_a_call_and_what_it_takes_to_find_its_cluster_share_one_time_out(service, api, own, cluster):
    service.answers = [HttpResponse(status=503, headers={"Retry-After": "19"}), at_address(cluster.port, own)]
    answer = api(timeout=timedelta(seconds=20)).send(CREATE)
    assert (answer.status, cluster.requests) == (0, []), "a create leaves well within the hold on its row"
    assert "took all the time" in answer.text


def test_many_threads_reach_one_cluster(service, api, own, cluster):
    service.answers = [at_address(cluster.port, own)]
    gke = api()
    with ThreadPoolExecutor(8) as pool:
        assert all(answer.ok for answer in pool.map(lambda _: gke.send(GET), range(40)))
    assert len(cluster.requests) == 40


def test_two_clusters_are_two_places(service, api, own, other, cluster):
    second = Cluster(answers=[json_response(200, {"kind": "Job", "metadata": {"name": "second"}})])
    with serve(second.handle, tls=other) as server:
        service.answers = [at_address(cluster.port, own), at_address(server.port, other)]
        gke = api()
        elsewhere = ApiRequest(method_id=GET.method_id, verb="GET", path=GET.path, cluster=f"{CLUSTER}-2")
        assert gke.send(GET).body == {"kind": "Job"}
        assert gke.send(elsewhere).body["metadata"] == {"name": "second"}
        assert gke.send(GET).body == {"kind": "Job"}
