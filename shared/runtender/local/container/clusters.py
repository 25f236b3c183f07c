"""Simulated GKE clusters as the GKE API describes them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from runtender.local.kubernetes.nodes import NodePool

BASE = "https://container.googleapis.com/v1"


class Status(StrEnum):
    """How a cluster is, in the API's words."""

    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    RECONCILING = "RECONCILING"
    STOPPING = "STOPPING"
    ERROR = "ERROR"
    DEGRADED = "DEGRADED"


@dataclass(frozen=True, kw_only=True, slots=True)
class GkeCluster:
    """One cluster. `location` is a zone or a region.

    `endpoint` is the address of its API ("" while it has none) with the certificate of `authority` (PEM, "" where none is
    told); `dns_endpoint` is its name, which can be called where `dns_open` says so.
    """

    name: str
    location: str
    born: datetime
    status: Status = Status.RUNNING
    minor: int = 34
    endpoint: str = ""
    authority: str = ""
    dns_endpoint: str = ""
    dns_open: bool = True
    autopilot: bool = False
    pools: tuple[NodePool, ...] = (NodePool(),)
    labels: Mapping[str, str] = field(default_factory=dict)

    def document(self, project: str) -> dict[str, Any]:
        """Return the cluster as the API shows it."""
        kind = "zones" if self.location.count("-") > 1 else "locations"
        link = f"{BASE}/projects/{project}/{kind}/{self.location}/clusters/{self.name}"
        version = f"1.{self.minor}.1-gke.1000000"
        return {
            "name": self.name,
            "id": f"{self.location}-{self.name}",
            "selfLink": link,
            "location": self.location,
            "locations": [self.location if kind == "zones" else f"{self.location}-a"],
            "status": self.status.value,
            "createTime": self.born.astimezone(UTC).isoformat(),
            "currentMasterVersion": version,
            "currentNodeVersion": version,
            "initialClusterVersion": version,
            "releaseChannel": {"channel": "REGULAR"},
            "network": "default",
            "subnetwork": "default",
            "networkConfig": {
                "network": f"projects/{project}/global/networks/default",
                "subnetwork": f"projects/{project}/regions/{region_of(self.location)}/subnetworks/default",
            },
            "resourceLabels": dict(self.labels),
            "autopilot": {"enabled": True} if self.autopilot else {},
            "workloadIdentityConfig": {"workloadPool": f"{project}.svc.id.goog"},
            "nodePools": [_pool(pool, link, version) for pool in self.pools],
            "currentNodeCount": sum(pool.nodes for pool in self.pools),
            **self._endpoints(),
        }

    def _endpoints(self) -> dict[str, Any]:
        """Return how the cluster is reached. A cluster that is being made has no address yet."""
        if not self.endpoint and not self.dns_endpoint:
            return {}
        authority = base64.b64encode(self.authority.encode()).decode()
        return {
            **({"endpoint": self.endpoint} if self.endpoint else {}),
            "masterAuth": {
                "clientCertificateConfig": {},
                **({"clusterCaCertificate": authority} if authority else {}),
            },
            "controlPlaneEndpointsConfig": {
                "dnsEndpointConfig": {
                    "endpoint": self.dns_endpoint,
                    **({"allowExternalTraffic": True} if self.dns_open else {}),
                },
                "ipEndpointsConfig": {
                    "enabled": bool(self.endpoint),
                    **({"publicEndpoint": self.endpoint} if self.endpoint else {}),
                },
            },
        }


def region_of(location: str) -> str:
    """Return the region of a zone or region."""
    return location.rpartition("-")[0] if location.count("-") > 1 else location


def _pool(pool: NodePool, link: str, version: str) -> dict[str, Any]:
    accelerator = {"acceleratorCount": str(pool.accelerator_count), "acceleratorType": pool.accelerator}
    growing = {"enabled": True, "minNodeCount": pool.nodes, "maxNodeCount": pool.limit}
    return {
        "name": pool.name,
        "selfLink": f"{link}/nodePools/{pool.name}",
        "status": "RUNNING",
        "version": version,
        "initialNodeCount": pool.nodes,
        "autoscaling": growing if pool.limit > pool.nodes else {},
        "config": {
            "machineType": pool.machine_type,
            "diskSizeGb": 100,
            "diskType": "pd-balanced",
            "labels": dict(pool.labels),
            **({"accelerators": [accelerator]} if pool.accelerator else {}),
            **({"spot": True} if pool.spot else {}),
            **({"taints": [_taint(taint) for taint in pool.taints]} if pool.taints else {}),
        },
    }


def _taint(taint: Mapping[str, str]) -> dict[str, str]:
    """Write a taint as the GKE API does, which has words of its own for what it does."""
    effects = {
        "NoSchedule": "NO_SCHEDULE",
        "PreferNoSchedule": "PREFER_NO_SCHEDULE",
        "NoExecute": "NO_EXECUTE",
    }
    return {"key": taint["key"], "value": taint.get("value", ""), "effect": effects[taint["effect"]]}
