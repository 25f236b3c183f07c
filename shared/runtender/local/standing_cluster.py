"""The standing cluster of the local cloud: a simulated GKE cluster whose pods really run.

Three parts make it up: the GKE API that says where the cluster is reached, the cluster's own Kubernetes API, and the runner
that lets its pods be processes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType

from runtender.local.container.clusters import GkeCluster
from runtender.local.container.core import ContainerCore
from runtender.local.container.server import ContainerServer
from runtender.local.environment import CLUSTER
from runtender.local.http import Faults, HttpRequest, HttpResponse, LocalAuthority
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import Event, PodStarted
from runtender.local.kubernetes.nodes import NodePool
from runtender.local.kubernetes.schema import installed_schemas
from runtender.local.kubernetes.server import KubernetesServer
from runtender.local.kubernetes.timings import Timings
from runtender.local.pods.runner import PodRunner
from runtender.local.vm.guest import WorkerEnvironment

_MINOR = 34
_POOL = "workers"
_OWNER = "batch.kubernetes.io/controller-uid"
# Every slot of a worker holds the models' libraries, and all pods share this computer's memory.
_CORES_OF_POD = 1


class StandingCluster(AbstractContextManager["StandingCluster"]):
    """A running cluster with `nodes` nodes, in a region of a project.

    `container_url` is where the GKE API answers, without its path; `roots_file` has the authority of the cluster's name, which
    no client knows by itself. `variables` lead pods to other services, with STORAGE_EMULATOR_HOST among them. `server` is the
    Kubernetes API, `pods` what runs there. Time passes from `run` on.
    """

    def __init__(
        self,
        *,
        folder: Path,
        project: str,
        region: str,
        nodes: int,
        variables: Mapping[str, str],
        scale: float,
        faults: Faults,
        now: Callable[[], datetime],
    ) -> None:
        born = now()
        pools = (NodePool(name=_POOL, nodes=nodes),)
        own = LocalAuthority.create(folder / "certificates" / "cluster")
        names = LocalAuthority.create(folder / "certificates" / "cluster-names")
        self._now = now
        self._begun: set[str] = set()
        self._core = KubernetesCore(
            born=born,
            name=CLUSTER,
            zone=f"{region}-a",
            minor=_MINOR,
            pools=pools,
            timings=Timings().scaled(scale),
            schemas=installed_schemas(_MINOR),
            faults=faults,
        )
        self.server = KubernetesServer(self._core, own=own, public=names, now=now)
        self.pods = PodRunner(
            root=folder / "pods",
            storage_url=variables["STORAGE_EMULATOR_HOST"],
            reports=self.server,
            worker=WorkerEnvironment(variables=variables),
            cores=_CORES_OF_POD,
        )
        cluster = GkeCluster(
            name=CLUSTER,
            location=region,
            born=born,
            minor=_MINOR,
            endpoint=self.server.endpoint,
            authority=own.ca_file.read_text(encoding="ascii"),
            dns_endpoint=self.server.dns_endpoint,
            pools=pools,
        )
        gke = ContainerCore(project=project, clusters=[cluster], faults=faults)
        self._container = ContainerServer(gke, now=now)
        self.container_url = self._container.url
        self.roots_file = names.ca_file

    def run(self, saw: Callable[[Event], None]) -> None:
        """Let time pass from now on. `saw` learns of every event, after it was acted upon."""

        def apply(event: Event) -> None:
            if isinstance(event, PodStarted):
                self._begun.add(event.labels.get(_OWNER, event.uid))
            self.pods.apply(event)
            saw(event)

        self.server.run(apply)

    def add_node(self) -> None:
        """Let one more node join at once."""
        self.server.add_node(_POOL)

    def answer_in_turn(self, request: HttpRequest) -> HttpResponse:
        """Answer a request in the midst of another one, which has the turn."""
        return self._core.apply(request, self._now())

    def counts(self) -> dict[str, int]:
        """Return the calls so far by API method."""
        return {**self._container.counts(), **self.server.counts()}

    def leftovers(self, apart_from: Container[str] = ()) -> dict[str, int]:
        """Count what runs have left in it, apart from objects of these UIDs."""
        left = self.server.leftovers(apart_from)
        return {
            "jobs": len(left.jobs),
            "pods": len(left.pods),
            "pod_processes": self.pods.processes(apart_from),
        }

    def jobs_begun(self) -> int:
        """Count the Jobs of which a worker ever ran."""
        return len(self._begun)

    def untouched_jobs(self, uids: Container[str]) -> int:
        """Count the Jobs of these UIDs that are there and not being deleted."""
        marks = (job["metadata"] for job in self.server.documents("jobs"))
        return sum(mark["uid"] in uids and "deletionTimestamp" not in mark for mark in marks)

    def close(self) -> None:
        """End all that runs in it, and then itself. May be called twice."""
        # First, so that no pod starts meanwhile.
        self.server.close()
        self.pods.close()
        self._container.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
