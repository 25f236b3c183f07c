"""An insert needs a permission for much of what its body says: every field is known here with the one it needs."""

from __future__ import annotations

from runtender.permissions.needs import NEEDS, Call
from runtender.runtimes.gce_vm import GceVm

PLAIN = None
# From the reference of `instances.insert`: what Google checks for a field beside `compute.instances.create`.
FIELDS = {
    "disks": "compute.disks.create",
    "disks.initializeParams.labels": "compute.disks.setLabels",
    "labels": "compute.instances.setLabels",
    "metadata": "compute.instances.setMetadata",
    "networkInterfaces.subnetwork": "compute.subnetworks.use",
    "serviceAccounts": "compute.instances.setServiceAccount",
    "serviceAccounts.email": "iam.serviceAccounts.actAs",
    "guestAccelerators": PLAIN,
    "machineType": PLAIN,
    "name": PLAIN,
    "networkInterfaces": PLAIN,
    "scheduling": PLAIN,
    # The key is used by Compute Engine's own agent.
    "disks.diskEncryptionKey": PLAIN,
    "shieldedInstanceConfig": PLAIN,
}
# Would need more than is granted: `compute.instances.setTags`, `compute.subnetworks.useExternalIp` and the like.
UNGRANTED = (
    "tags",
    "resourcePolicies",
    "canIpForward",
    "deletionProtection",
    "minCpuPlatform",
    "displayDevice",
)


def fields_of(body):
    for name, value in body.items():
        yield name
        for item in value if isinstance(value, list) else ():
            yield from (f"{name}.{inner}" for inner in item)
            yield from (f"{name}.initializeParams.{inner}" for inner in item.get("initializeParams", ()))


def test_a_body_needs_what_the_table_lists_and_no_more(a_job, a_row, settings):
    gpu = {"accelerator_type": "nvidia-l4", "accelerator_count": 1}
    job = a_job(service_account="worker@p.iam.gserviceaccount.com", **gpu)
    body = GceVm().create(job, a_row(), settings).body or {}
    said = set(fields_of(body))
    assert {name for name in body if name not in FIELDS} == set()
    assert said & set(UNGRANTED) == set()
    needed = {permission for field, permission in FIELDS.items() if permission and field in said}
    listed = {need.permission for need in NEEDS[Call("compute.instances.insert")]}
    assert needed | {"compute.instances.create"} == listed


def test_no_machine_has_an_address_outside(a_job, a_row, settings):
    body = GceVm().create(a_job(), a_row(), settings).body or {}
    assert "networkInterfaces.accessConfigs" not in set(fields_of(body))
