"""Where each permission is bound: on which resource, and under which condition on the names of what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.permissions.needs import Where


@dataclass(frozen=True, slots=True)
class Binding:
    """A resource whose IAM policy takes the binding, and the condition (CEL) that goes with it.

    Words after a dollar sign are the deployment's: `$project`, `$database`, `$status_bucket`, `$code_bucket`, and bucket and
    folder of SF_CELLS_PREFIX, `$results_bucket` and `$results_folder`.
    """

    resource: str
    condition: str = ""


def _named_ours(kind: str, collection: str) -> str:
    # Everything the plane makes is called `sf-...`.
    name = f"resource.name.extract('/{collection}/{{name}}')"
    return f"resource.type == 'compute.googleapis.com/{kind}' && {name}.startsWith('sf-')"


def _below(bucket: str, folder: str) -> str:
    return f"resource.name.startsWith('projects/_/buckets/${bucket}/objects/{folder}')"


_OTHERS_FOLDERS = ("runs/status/", "runs/gce-status/", "runs/logs/")
_NO_OTHERS = " && ".join(f"!{_below('code_bucket', folder)}" for folder in _OTHERS_FOLDERS)

BINDINGS: Mapping[Where, Binding] = {
    Where.PROJECT: Binding("the project"),
    Where.MACHINES: Binding("the project", _named_ours("Instance", "instances")),
    Where.DISKS: Binding("the project", _named_ours("Disk", "disks")),
    Where.SUBNETS: Binding("the workers' subnets"),
    Where.WORKER_ACCOUNT: Binding("the worker's service account"),
    Where.PUSHER_ACCOUNT: Binding("the pusher's service account"),
    Where.DATABASE: Binding("the project", "resource.name == 'projects/$project/databases/$database'"),
    Where.STATUS_BUCKET: Binding("the status bucket"),
    Where.MARKERS: Binding("the status bucket", _below("status_bucket", "runs/status/")),
    Where.MARKER_COPIES: Binding("the status bucket", _below("status_bucket", "runs/gce-status/")),
    Where.CODE_BUCKET: Binding("the code bucket"),
    Where.CONFIGS: Binding("the code bucket", f"{_below('code_bucket', 'runs/')} && {_NO_OTHERS}"),
    Where.LOGS: Binding("the code bucket", _below("code_bucket", "runs/logs/")),
    Where.POD_LOGS: Binding(
        "the code bucket", f"{_below('code_bucket', 'runs/logs/')} && resource.name.endsWith('/pods.log')"
    ),
    Where.RESULTS_BUCKET: Binding("the bucket of SF_CELLS_PREFIX"),
    Where.RESULTS: Binding("the bucket of SF_CELLS_PREFIX", _below("results_bucket", "$results_folder/")),
    Where.INPUT_BUCKETS: Binding("each bucket with panels"),
    Where.TICK_TOPIC: Binding("the tick topic"),
    Where.MARKER_TOPIC: Binding("the marker topic"),
    Where.NOTIFY_TOPIC: Binding("the notification topic"),
    Where.DEAD_LETTER_TOPIC: Binding("the dead-letter topic"),
    Where.SUBSCRIPTIONS: Binding("each push subscription"),
    Where.SERVICES: Binding("each function's Cloud Run service"),
    Where.REPOSITORY: Binding("the images' repository"),
    Where.SECRETS: Binding("each secret that workers may read"),
    Where.DISK_KEY: Binding("the key of SF_KMS_KEY"),
    Where.CLUSTERS: Binding("the project"),
}

RBAC: Mapping[Where, str] = {
    Where.NAMESPACE: "a Role in the workers' namespace of each standing cluster",
    Where.ALL_NAMESPACES: "a ClusterRole of each standing cluster",
}
"""What takes a binding inside of a cluster."""
