"""Google's API client against the simulated GKE API, checked with the discovery document that it ships."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.container.server import ContainerServer
from runtender.local.kubernetes.nodes import NodePool

discovery = pytest.importorskip(
    "googleapiclient.discovery", reason="google-api-python-client is not installed"
)
credentials = pytest.importorskip("google.auth.credentials")
errors = pytest.importorskip("googleapiclient.errors")

PARENT = "projects/p/locations/us-central1"


@pytest.fixture
def container() -> Iterator[ContainerServer]:
    pools = (NodePool(), NodePool(name="l4", accelerator="nvidia-l4", accelerator_count=1, spot=True, most=9))
    cluster = GkeCluster(
        name="standing",
        location="us-central1",
        born=datetime(2026, 1, 1, tzinfo=UTC),
        endpoint="127.0.0.1:1443",
        authority="PEM",
        dns_endpoint="localhost:2443",
        pools=pools,
        labels={"a": "b"},
    )
    with ContainerServer(ContainerCore(project="p", clusters=[cluster])) as server:
        yield server


@pytest.fixture
def clusters(container) -> Iterator[Any]:
    service = discovery.build(
        "container",
        "v1",
        credentials=credentials.AnonymousCredentials(),
        client_options={"api_endpoint": container.url},
        static_discovery=True,
    )
    with service:
        yield service.projects().locations().clusters()


def test_a_cluster_is_got_and_listed(clusters, container) -> None:
    found = clusters.get(name=f"{PARENT}/clusters/standing").execute()
    listed = clusters.list(parent="projects/p/locations/-").execute()

    assert listed == {"clusters": [found]}
    assert container.counts() == {
        "container.projects.locations.clusters.get": 1,
        "container.projects.locations.clusters.list": 1,
    }


def test_a_cluster_that_is_not_there_is_an_error(clusters) -> None:
    with pytest.raises(
        Exception, match="Not found: projects/p/locations/us-central1/clusters/nobody"
    ) as caught:
        clusters.get(name=f"{PARENT}/clusters/nobody").execute()

    assert getattr(caught.value, "status_code", 0) == 404


def test_a_cluster_has_no_field_that_the_api_does_not_have(clusters) -> None:
    found = clusters.get(name=f"{PARENT}/clusters/standing").execute()

    assert list(unknown(clusters._schema, "Cluster", found)) == []  # noqa: SLF001 - where the client keeps its schemas


def unknown(schemas, name: str, value: dict[str, Any], path: str = "") -> Iterator[str]:
    """Go through the names in a document that its schema does not have."""
    properties = schemas.get(name)["properties"]
    for key, item in value.items():
        where = f"{path}.{key}"
        if key not in properties:
            yield where
            continue
        kind = properties[key]
        below = kind.get("$ref") or kind.get("items", {}).get("$ref")
        for one in item if isinstance(item, list) else [item]:
            if below:
                yield from unknown(schemas, below, one, where)
