"""Clusters: how one that stands is found and reached, and the body that creates one for a job.

One that stands is found by name and location. Where only its name is known and it is not at home, the whole project is listed,
and only read: a name that several clusters have is nobody's to choose from.

A cluster has no fence of its own, but its nodes have: none lives longer than the job may take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtender import ids
from runtender.model import Job, NodePool, Resource, ResourceKind
from runtender.observed import ClusterFacts
from runtender.ports import ApiAnswer, ApiRequest
from runtender.runtimes.kube import APP, Bearing, whole_seconds
from runtender.settings import Settings

Body = dict[str, Any]

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
# The default block of a /14 exhausts a network at about 32 clusters.
POD_BLOCK = "/20"
# What of each pod's log is kept: its end.
_LOG_TAIL = 1500
_MOST_PODS = 20
_ANYWHERE = "-"
_PROJECT = re.compile(r"projects/([^/]+)/")
_MINOR = re.compile(r"1\.(\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlace:
    """Where a Kubernetes Job is, taken from its resource name."""

    location: str
    cluster: str
    namespace: str
    job: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """How a cluster's Kubernetes API is reached: by a name, for which public roots hold, or at an address.

    `ca_certificate` (PEM in base64) is the authority that an address is verified by; without one it cannot be.
    """

    host: str
    is_name: bool = False
    ca_certificate: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ambiguity:
    """Several clusters have the name that was asked for; `places` are the locations where."""

    name: str
    places: tuple[str, ...]

    def __str__(self) -> str:
        return f"there are {len(self.places)} clusters {self.name!r}: in {', '.join(self.places)}"


def full_name(project: str, location: str, cluster: str) -> str:
    """Return a cluster's resource name."""
    return f"projects/{project}/locations/{location}/clusters/{cluster}"


def get_cluster(project: str, location: str, cluster: str) -> ApiRequest:
    """Describe the look at a cluster where it is said to be."""
    return ApiRequest(
        method_id="container.projects.locations.clusters.get",
        verb="GET",
        path=f"/{full_name(project, location, cluster)}",
    )


def list_clusters(project: str) -> ApiRequest:
    """Describe the list of the project's clusters, wherever they are. It has one page."""
    return ApiRequest(
        method_id="container.projects.locations.clusters.list",
        verb="GET",
        path=f"/projects/{project}/locations/{_ANYWHERE}/clusters",
    )


def version_of(cluster: str) -> ApiRequest:
    """Describe the question for the version of a cluster's Kubernetes API; `cluster` is its full name."""
    return ApiRequest(method_id="kubernetes.version.get", verb="GET", path="/version", cluster=cluster)


def read_cluster(body: Mapping[str, Any]) -> ClusterFacts:
    """Read a cluster as the GKE API shows it. A version that it does not tell is 0: no field is too new for it."""
    name, location = str(body.get("name") or ""), str(body.get("location") or "")
    project = _PROJECT.search(str(body.get("selfLink") or ""))
    version = _MINOR.match(str(body.get("currentMasterVersion") or ""))
    pools = [pool.get("config") or {} for pool in body.get("nodePools") or ()]
    machines = (str(config.get("machineType") or "") for config in pools)
    return ClusterFacts(
        name=name,
        full_name=full_name(project[1] if project else "", location, name),
        location=location,
        status=str(body.get("status") or ""),
        has_endpoint=endpoint_of(body) is not None,
        server_minor=int(version[1]) if version else 0,
        autopilot=bool((body.get("autopilot") or {}).get("enabled")),
        machine_types=tuple(dict.fromkeys(filter(None, machines))),
    )


def read_clusters(answer: ApiAnswer) -> tuple[ClusterFacts, ...] | None:
    """Read a list of clusters; None where it could not be read, or leaves out a place that did not answer."""
    if not answer.ok or answer.body.get("missingZones"):
        return None
    return tuple(read_cluster(body) for body in answer.body.get("clusters") or ())


def read_version(answer: ApiAnswer) -> int | None:
    """Return the minor version 1.x that a Kubernetes API tells of itself; None where it does not."""
    minor = re.match(r"\d+", str(answer.body.get("minor") or "")) if answer.ok else None
    return int(minor[0]) if minor else None


def choose_cluster(name: str, listed: Iterable[ClusterFacts]) -> ClusterFacts | Ambiguity | None:
    """Return the one cluster of a name; None where there is none."""
    found = [cluster for cluster in listed if cluster.name == name]
    if len(found) > 1:
        return Ambiguity(name=name, places=tuple(sorted(cluster.location for cluster in found)))
    return found[0] if found else None


def create_body(job: Job, row: Resource, settings: Settings, *, network: str = "") -> Body:
    """Return the body of `clusters.create`. `network` is the subnet's, where it was looked up."""
    bearing = Bearing(job=job, row=row, settings=settings)
    cluster: Body = {
        "name": row.name,
        "nodePools": [_node_pool(bearing, pool) for pool in bearing.kubernetes.pools],
        "autoscaling": {"enableNodeAutoprovisioning": False},
        "ipAllocationPolicy": {"useIpAliases": True, "clusterIpv4CidrBlock": POD_BLOCK},
        "networkConfig": {"defaultEnablePrivateNodes": True},
        "workloadIdentityConfig": {"workloadPool": f"{settings.project}.svc.id.goog"},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "resourceLabels": _labels(bearing),
    }
    if subnet := job.placement_of(row).subnetwork_uri:
        cluster["subnetwork"] = subnet
    if network:
        cluster["network"] = network
    return {"cluster": cluster}


def parse_job_name(resource_name: str) -> JobPlace | None:
    """Take the resource name of a Job apart; None for anything that `job_name` does not make."""
    words = resource_name.split("/")
    if words[0::2] != ["projects", "locations", "clusters", "namespaces", "jobs"] or not all(words):
        return None
    _, location, cluster, namespace, job = words[1::2]
    return JobPlace(location=location, cluster=cluster, namespace=namespace, job=job)


def job_name(project: str, place: JobPlace) -> str:
    """Return the resource name of a Job, as telemetry and older readers know it."""
    return (
        f"projects/{project}/locations/{place.location}/clusters/{place.cluster}"
        f"/namespaces/{place.namespace}/jobs/{place.job}"
    )


def region_of(location: str) -> str:
    """Return the region of a zone or region."""
    return location.rpartition("-")[0] if location.count("-") >= 2 else location


def endpoint_of(cluster: Mapping[str, Any]) -> Endpoint | None:
    """Return how to reach a cluster; None while it has no endpoint.

    The DNS endpoint has a public certificate, the address one of the cluster's own authority.
    """
    dns = (cluster.get("controlPlaneEndpointsConfig") or {}).get("dnsEndpointConfig") or {}
    if dns.get("allowExternalTraffic") and dns.get("endpoint"):
        return Endpoint(host=str(dns["endpoint"]), is_name=True)
    if not cluster.get("endpoint"):
        return None
    authority = (cluster.get("masterAuth") or {}).get("clusterCaCertificate")
    return Endpoint(host=str(cluster["endpoint"]), ca_certificate=authority or None)


def log_blocks(logs: Sequence[tuple[str, str]]) -> str:
    """Return the ends of some pods' logs under their names; a pod that said nothing has no block."""
    spoke = [(pod, text) for pod, text in logs if text]
    blocks = [f"--- pod {pod} ---\n{text[-_LOG_TAIL:]}" for pod, text in spoke[:_MOST_PODS]]
    if len(spoke) > _MOST_PODS:
        blocks.append(f"--- {len(spoke) - _MOST_PODS} more pods ---")
    return "\n".join(blocks)


def _labels(bearing: Bearing) -> dict[str, str]:
    """GKE hands a cluster's labels on to its nodes: the kind tells those from the VMs of jobs."""
    job, row = bearing.job, bearing.row
    given = {name: ids.label_value(value) for name, value in job.plan.labels.items()}
    return {
        **given,
        "managed-by": APP,
        "sf-run-id": ids.label_value(job.run_id),
        "sf-plane": bearing.settings.plane_id,
        "sf-kind": ResourceKind.CLUSTER.value,
        "sf-job": job.plan.name,
        "sf-key": job.key,
        "sf-nonce": row.nonce,
        "sf-attempt": str(job.attempt),
        "sf-placement": str(row.placement),
    }


def _node_pool(bearing: Bearing, pool: NodePool) -> Body:
    plan = bearing.plan
    config: Body = {
        "machineType": pool.machine_type,
        "diskSizeGb": plan.boot_disk_gb,
        "diskType": pool.disk_type,
        "oauthScopes": [CLOUD_PLATFORM],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "maxRunDuration": f"{whole_seconds(bearing.kubernetes.max_cluster_age)}s",
    }
    if plan.service_account:
        config["serviceAccount"] = plan.service_account
    if pool.spot:
        config["spot"] = True
    if pool.accelerator_count and pool.accelerator_type:
        config["accelerators"] = [
            {
                "acceleratorType": pool.accelerator_type,
                "acceleratorCount": str(pool.accelerator_count),
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"},
            }
        ]
    return {
        "name": pool.name,
        "initialNodeCount": pool.start,
        "autoscaling": {"enabled": True, "minNodeCount": pool.least, "maxNodeCount": pool.most},
        # A node that is upgraded under a run takes its worker along.
        "management": {"autoUpgrade": False, "autoRepair": False},
        "config": config,
    }
