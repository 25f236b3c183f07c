"""One VM as Compute Engine describes it: the body that creates it, its labels, and what telemetry says of it.

The body carries the fence that needs nobody: after `maxRunDuration` the platform deletes the VM by itself. Disks do not
inherit labels and take the VM's name by default, so both are given explicitly: a leftover disk is found by its label,
and an old disk of the VM's name is never attached by accident. Nobody but the script is at home on the VM: it has no
address outside, takes no key of the project's, and boots nothing that is not signed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from runtender.ids import disk_name, gce_status_object
from runtender.model import Job, JobPlan, Placement, Resource, ResourceKind

Body = dict[str, Any]

BOOT_IMAGE = "projects/cos-cloud/global/images/family/cos-stable"
CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
RUNTIME = "gce"
DISK_KIND = "disk"

# What the API accepts for maxRunDuration.
_SHORTEST_TTL = timedelta(seconds=30)
_LONGEST_TTL = timedelta(days=120)
_LABEL_LENGTH = 63
_METADATA: Mapping[str, str] = {
    "google-logging-enabled": "true",
    "serial-port-logging-enable": "true",
    # The console is written to and read, never typed on.
    "serial-port-enable": "false",
    # Who may log in says IAM, and no key that somebody has put into the project.
    "enable-oslogin": "TRUE",
    "block-project-ssh-keys": "TRUE",
}


def resource_path(project: str, zone: str, name: str) -> str:
    """Return the path of a VM, as telemetry and older readers know it."""
    return f"projects/{project}/zones/{zone}/instances/{name}"


def instance_body(job: Job, row: Resource, *, plane_id: str, startup_script: str, kms_key: str = "") -> Body:
    """Return the body of `instances.insert`. The same row always gives the same body.

    `kms_key` encrypts the boot disk; `{region}` in it is the row's.
    """
    plan, zone = job.plan, row.location
    labels = instance_labels(job, row, plane_id)
    body: Body = {
        "name": row.name,
        "machineType": f"zones/{zone}/machineTypes/{plan.machine_type}",
        "scheduling": _scheduling(plan),
        "disks": [_boot_disk(plan, row, labels, kms_key)],
        "networkInterfaces": [_interface(plan, zone)],
        "metadata": {
            "items": [
                {"key": key, "value": value}
                for key, value in {"startup-script": startup_script, **_METADATA}.items()
            ]
        },
        "shieldedInstanceConfig": {
            "enableSecureBoot": True,
            "enableVtpm": True,
            "enableIntegrityMonitoring": True,
        },
        "labels": labels,
    }
    if plan.service_account:
        body["serviceAccounts"] = [{"email": plan.service_account, "scopes": [CLOUD_PLATFORM]}]
    if plan.accelerator_count and plan.accelerator_type:
        body["guestAccelerators"] = [
            {
                "acceleratorType": f"zones/{zone}/acceleratorTypes/{plan.accelerator_type}",
                "acceleratorCount": plan.accelerator_count,
            }
        ]
    return body


def instance_labels(job: Job, row: Resource, plane_id: str) -> dict[str, str]:
    """Return the labels by which a VM is known as this plane's, this job's and this try's. Ours win over the user's."""
    return {
        **job.plan.labels,
        "run_id": job.run_id[:_LABEL_LENGTH].lower(),
        "runtime": RUNTIME,
        "sf-plane": plane_id,
        "sf-kind": ResourceKind.VM.value,
        "sf-job": row.name,
        "sf-key": job.key,
        "sf-nonce": row.nonce,
        "sf-attempt": str(job.attempt),
        "sf-placement": str(row.placement),
    }


def plan_json(plan: JobPlan, placement: Placement, project: str) -> Body:
    """Return the job's telemetry `gce_instance`: the plan, and where its VM stands or is to stand."""
    return {
        "instance_name": plan.name,
        "machine_type": plan.machine_type,
        "accelerator_type": plan.accelerator_type,
        "accelerator_count": plan.accelerator_count,
        "hardware": plan.hardware,
        "gpu_type": plan.gpu_type,
        "image_uri": plan.image_uri,
        "package_uri": plan.package_uri,
        "config_uri": plan.config_uri,
        "subnetwork_uri": placement.subnetwork_uri,
        "status_uri": status_uri(plan),
        "max_run_duration_seconds": _ttl_seconds(plan),
        "boot_disk_gb": plan.boot_disk_gb,
        "resource_plan": plan.resource_plan,
        "region": placement.region,
        "zone": placement.zone,
        "resource_path": resource_path(project, placement.location, plan.name),
    }


def status_uri(plan: JobPlan) -> str:
    """Return where older readers look for the VM's end; empty without a status bucket."""
    return f"gs://{plan.status_bucket}/{gce_status_object(plan.name)}" if plan.status_bucket else ""


def probe_handle(plan: JobPlan, placement: Placement, project: str) -> Body:
    """Return the job's telemetry `probe_handle`: all that is needed to look for the VM again."""
    return {
        "runtime": RUNTIME,
        "native_id": plan.name,
        "region": placement.region,
        "id_kind": "exact",
        "resource_name": resource_path(project, placement.location, plan.name),
    }


def _scheduling(plan: JobPlan) -> Body:
    return {
        "automaticRestart": False,
        # A Spot VM cannot be moved to another host.
        "onHostMaintenance": "TERMINATE" if plan.spot else plan.on_host_maintenance,
        "provisioningModel": "SPOT" if plan.spot else "STANDARD",
        "maxRunDuration": {"seconds": str(_ttl_seconds(plan))},
        "instanceTerminationAction": "DELETE",
    }


def _ttl_seconds(plan: JobPlan) -> int:
    return math.ceil(min(max(plan.max_run_duration, _SHORTEST_TTL), _LONGEST_TTL).total_seconds())


def _boot_disk(plan: JobPlan, row: Resource, labels: Mapping[str, str], kms_key: str) -> Body:
    disk: Body = {
        "boot": True,
        "autoDelete": True,
        "initializeParams": {
            "diskName": disk_name(row.name, row.nonce),
            "sourceImage": BOOT_IMAGE,
            "diskSizeGb": str(plan.boot_disk_gb),
            "diskType": f"zones/{row.location}/diskTypes/{plan.disk_type}",
            "labels": {**labels, "sf-kind": DISK_KIND},
        },
    }
    if kms_key:
        region = row.location.rpartition("-")[0]
        disk["diskEncryptionKey"] = {"kmsKeyName": kms_key.replace("{region}", region)}
    return disk


def _interface(plan: JobPlan, zone: str) -> Body:
    """Return the one network interface: the zone's subnet (else the default network), never an external address."""
    subnets = (place.subnetwork_uri for place in plan.placements if place.location == zone)
    subnet = next(subnets, "")
    return {"subnetwork": subnet} if subnet else {}
