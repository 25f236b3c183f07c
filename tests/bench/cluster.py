"""A standing cluster with room for so many workers, and the GKE API that knows it. It tells of each call that reaches it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.http import HttpRequest
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.nodes import NodePool

NAME, LOCATION, ZONE = "standing", "us-central1", "us-central1-a"
GKE_HOST, API_HOST = "container", "kubernetes"
GKE_URL = f"http://{GKE_HOST}/v1"


class Cluster:
    """One cluster of `nodes` nodes, each with room for one worker. `note` hears the method of each call."""

    def __init__(self, nodes: int, born: datetime, note: Callable[[str], None]) -> None:
        def noted(method: str, _request: HttpRequest) -> None:
            note(method)

        pools = (NodePool(nodes=nodes),)
        known = GkeCluster(name=NAME, location=LOCATION, born=born, pools=pools, dns_endpoint=API_HOST)
        self.gke = ContainerCore(project="p", clusters=[known], faults=noted)
        self.kubernetes = KubernetesCore(born=born, name=NAME, zone=ZONE, pools=pools, faults=noted)
