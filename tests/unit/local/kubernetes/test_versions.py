"""What a cluster knows at its version, and that what it writes is what that version publishes."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.resources import RESOURCES
from runtender.local.kubernetes.schema import installed_schemas

DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("minor", "dropped"),
    [
        pytest.param(34, set(), id="1.34"),
        pytest.param(33, {"podReplacementPolicy"}, id="1.33"),
        pytest.param(32, {"podReplacementPolicy", "backoffLimitPerIndex", "maxFailedIndexes"}, id="1.32"),
        pytest.param(
            30,
            {"podReplacementPolicy", "backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy"},
            id="1.30",
        ),
    ],
)
def test_an_older_server_drops_what_it_does_not_know(make_cluster, job, minor, dropped) -> None:
    cluster = make_cluster(minor=minor)
    wanted = {
        "podReplacementPolicy": "Failed",
        "backoffLimitPerIndex": 1,
        "maxFailedIndexes": 1,
        "podFailurePolicy": {"rules": [DISRUPTED]},
    }

    spec = cluster.create_job(job(**wanted))["spec"]

    assert set(wanted) - set(spec) == dropped
    assert spec["backoffLimit"] == (6 if "backoffLimitPerIndex" in dropped else 2_147_483_647)


def test_every_object_that_a_cluster_writes_fits_its_published_schema(make_cluster, job) -> None:
    schemas = installed_schemas(34)
    if schemas is None:
        pytest.skip("the package kubernetes-validate is not installed")
    cluster = make_cluster(ending=lambda started: 3 if started.env["JOB_COMPLETION_INDEX"] == "1" else 0)
    cluster.create_job(job(backoffLimitPerIndex=0))
    cluster.wait(20)

    checked = [
        (document["kind"], schemas.problems(resource, document))
        for resource in RESOURCES.values()
        for document in cluster.core.documents(resource.plural)
    ]

    assert {"Job", "Pod", "Event", "Node", "Namespace", "ServiceAccount"} <= {kind for kind, _ in checked}
    assert [found for found in checked if found[1]] == []
