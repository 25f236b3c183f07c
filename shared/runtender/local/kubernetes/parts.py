"""A cluster put together: its state, its controllers, and what the calls of the API need of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from runtender.local.kubernetes.admission import Admission
from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.deployments import DeploymentController
from runtender.local.kubernetes.disruptions import Disruptions
from runtender.local.kubernetes.jobs import JobController
from runtender.local.kubernetes.kubelet import Kubelet
from runtender.local.kubernetes.lists import Lists
from runtender.local.kubernetes.namespaces import NamespaceController
from runtender.local.kubernetes.nodes import NodePool, Nodes
from runtender.local.kubernetes.quotas import Quotas
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.removal import Removal
from runtender.local.kubernetes.scheduler import Scheduler
from runtender.local.kubernetes.schema import Schemas
from runtender.local.kubernetes.timings import Timings


class Parts:
    """Everything that makes up one cluster. `missing` are images that no registry has."""

    def __init__(
        self,
        *,
        name: str,
        zone: str,
        minor: int,
        pools: Iterable[NodePool],
        timings: Timings,
        schemas: Schemas | None,
        born: datetime,
    ) -> None:
        self.cluster = Cluster(name=name, minor=minor, timings=timings, born=born)
        self.schemas = schemas
        self.missing: set[str] = set()
        self.lists = Lists(self.cluster)
        recorder = Recorder(self.cluster)
        self.removal = Removal(self.cluster)
        self.admission = Admission(self.cluster, Quotas(self.cluster))
        NamespaceController(self.cluster, self.removal)
        JobController(self.cluster, recorder, self.admission, self.removal)
        DeploymentController(self.cluster, recorder, self.admission)
        self.nodes = Nodes(self.cluster, pools, zone)
        self.scheduler = Scheduler(self.cluster, recorder, self.nodes)
        self.kubelet = Kubelet(
            self.cluster, recorder, images=lambda image: image not in self.missing, lost=self.nodes.lost
        )
        self.disruptions = Disruptions(self.cluster, recorder, self.nodes, self.kubelet)
        self.cluster.settle()
