"""The plane of a simulated world: the real ports and runtimes, over the simulated services."""

from __future__ import annotations

from collections.abc import Mapping

from runtender.engine import Plane
from runtender.errors import Retryable
from runtender.gcp.compute import RestApi
from runtender.gcp.kubernetes import GkeApi
from runtender.gcp.serviceusage import GoogleQuota
from runtender.gcp.storage import StorageObjects
from runtender.local.simulation.cloud import COMPUTE, STORAGE, Cloud
from runtender.local.simulation.clusters import GKE
from runtender.local.simulation.invocations import Cross, tapped
from runtender.ports import ApiAnswer, ApiRequest
from runtender.runtimes.gce_vm import GceVm
from runtender.runtimes.gke_job import GkeJob


class Clusters:
    """The GKE adapter as a process has it: what it remembers of clusters is gone when the process is."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self.restart()

    def restart(self) -> None:
        """Let the process be another one."""
        cloud = self._cloud
        timeout = cloud.settings.timing.http_timeout
        self._api = GkeApi(GKE, clock=cloud.clock, sessions=lambda _https: cloud.session, timeout=timeout)

    def send(self, request: ApiRequest) -> ApiAnswer:
        return self._api.send(request)


def wired(cloud: Cloud, clusters: Clusters, cross: Cross) -> Plane:
    """Return the plane; each of its external calls is led through `cross`."""
    settings, timeout = cloud.settings, cloud.settings.timing.http_timeout
    objects = StorageObjects(cloud.session, STORAGE, clock=cloud.clock, timeout=timeout)
    api = RestApi(cloud.session, f"{COMPUTE}/compute/v1", clock=cloud.clock, timeout=timeout)
    return Plane(
        settings=settings,
        store=tapped(cloud.store, "store", cross),
        objects=tapped(objects, "objects", cross),
        topics=tapped(_Publisher(cloud), "topics", cross),
        clock=cloud.clock,
        runtimes={"gce": GceVm(), "gke": GkeJob()},
        apis={"gce": tapped(api, "api", cross), "gke": tapped(clusters, "api", cross)},
        quota=GoogleQuota(settings.project, tapped(api, "api", cross), None, clock=cloud.clock),
    )


class _Publisher:
    """The publishing side of the plane's topics."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        if self._cloud.weather.publish_fails():
            raise Retryable(f"a message for {topic} was not taken")
        return self._cloud.topics.publish(topic, body, attributes, self._cloud.clock.time)
