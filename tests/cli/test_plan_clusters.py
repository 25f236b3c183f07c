"""`plan` on a standing cluster: looked up as the plane would, and planned for unseen where that may not be."""

from __future__ import annotations

import json

import pytest

from runtender.ports import ApiAnswer

CLUSTERS = "container.projects.locations.clusters"
CLUSTER = {
    "name": "standing",
    "location": "us-east1",
    "selfLink": "https://container.googleapis.com/v1/projects/demo/locations/us-east1/clusters/standing",
    "status": "RUNNING",
    "endpoint": "192.0.2.1",
    "currentMasterVersion": "1.33.1-gke.1",
    "nodePools": [{"config": {"machineType": "n2-standard-16"}}],
}


class Answers:
    """A GKE that answers so for one cluster, lists none, and tells a version to whoever asks for it."""

    def __init__(self, answer):
        self._answer = answer

    def send(self, request):
        others: dict[str, dict[str, object]] = {
            "kubernetes.version.get": {"minor": "33"},
            f"{CLUSTERS}.list": {"clusters": []},
        }
        known = others.get(request.method_id)
        return self._answer if known is None else ApiAnswer(status=200, body=known)


@pytest.fixture
def plan(runtender, flights, tmp_path, intake):
    """Plan the flights on the cluster `standing`, where GKE gives this answer."""

    def run(answer):
        compute = {"gke_cluster_name": "standing", "machine_type": "n2-standard-8"}
        config = {**json.loads(flights.read_text()), "python_runtime": "gke", "compute": compute}
        (tmp_path / "config.json").write_text(json.dumps(config))
        return runtender(
            "plan", str(tmp_path / "config.json"), "--format", "json",
            settings=intake.plane.settings, clusters=Answers(answer),
        )  # fmt: skip

    return run


def test_it_is_planned_for_the_nodes_that_stand_there(plan):
    (job,) = json.loads(plan(ApiAnswer(status=200, body=CLUSTER)).stdout)["jobs"]
    (request,) = job["requests"]
    (container,) = request["body"]["spec"]["template"]["spec"]["containers"]
    assert job["placements"] == ["us-east1/auto"]
    assert (request["method_id"], request["query"]) == (
        "kubernetes.jobs.create",
        {"fieldValidation": "Strict"},
    )
    assert container["resources"]["requests"]["cpu"] == "9"


def test_one_that_is_not_there_is_refused_as_the_plane_would(plan):
    result = plan(ApiAnswer(status=404))
    assert result.exit_code != 0
    assert "cluster 'standing': there is none" in result.stderr


@pytest.mark.parametrize("status", [403, 503, 0])
def test_one_that_cannot_be_looked_at_is_planned_for_unseen(plan, status):
    result = plan(ApiAnswer(status=status, text="no"))
    assert result.exit_code == 0, result.stderr
