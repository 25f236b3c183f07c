"""A cluster that is made for one job: the body that creates it, and what the answers of the GKE API say of one.

A cluster has no fence of its own, but its nodes have: none lives longer than the job may take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtender import ids
from runtender.forecast.gke import GkePlan, NodePool
from runtender.model import Job, Resource, ResourceKind
from runtender.runtimes.kube import APP, whole_seconds
from runtender.settings import Settings

Body = dict[str, Any]

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
# The default block of a /14 exhausts a network at about 32 clusters.
POD_BLOCK = "/20"
# What of each pod's log is kept: its end.
_LOG_TAIL = 1500
_MOST_PODS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPlace:
    """Where a Kubernetes Job is, taken from its resource name."""

    location: str
    cluster: str
    namespace: str
    job: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """How a cluster's Kubernetes API is reached. `ca_certificate` (base64) is None where public roots hold."""

    host: str
    ca_certificate: str | None


def create_body(plan: GkePlan, job: Job, row: Resource, settings: Settings, *, network: str = "") -> Body:
    """Return the body of `clusters.create`. `network` is the subnet's, where it was looked up."""
    cluster: Body = {
        "name": row.name,
        "nodePools": [_node_pool(plan, pool) for pool in plan.pools],
        "autoscaling": {"enableNodeAutoprovisioning": False},
        "ipAllocationPolicy": {"useIpAliases": True, "clusterIpv4CidrBlock": POD_BLOCK},
        "networkConfig": {"defaultEnablePrivateNodes": True},
        "workloadIdentityConfig": {"workloadPool": f"{settings.project}.svc.id.goog"},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "resourceLabels": _labels(plan, job, row, settings),
    }
    subnet = next(
        (place.subnetwork_uri for place in plan.job.placements if place.location == row.location), ""
    )
    if subnet:
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
        return Endpoint(host=str(dns["endpoint"]), ca_certificate=None)
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


def _labels(plan: GkePlan, job: Job, row: Resource, settings: Settings) -> dict[str, str]:
    """GKE hands a cluster's labels on to its nodes: the kind tells those from the VMs of jobs."""
    given = {name: ids.label_value(value) for name, value in plan.job.labels.items()}
    return {
        **given,
        "managed-by": APP,
        "sf-run-id": ids.label_value(job.run_id),
        "sf-plane": settings.plane_id,
        "sf-kind": ResourceKind.CLUSTER.value,
        "sf-job": plan.job.name,
        "sf-key": job.key,
        "sf-nonce": row.nonce,
        "sf-attempt": str(job.attempt),
        "sf-placement": str(row.placement),
    }


def _node_pool(plan: GkePlan, pool: NodePool) -> Body:
    config: Body = {
        "machineType": pool.machine_type,
        "diskSizeGb": plan.job.boot_disk_gb,
        "diskType": pool.disk_type,
        "oauthScopes": [CLOUD_PLATFORM],
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "maxRunDuration": f"{whole_seconds(plan.max_cluster_age)}s",
    }
    if plan.job.service_account:
        config["serviceAccount"] = plan.job.service_account
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
