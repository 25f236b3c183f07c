"""How a scenario's file says what befalls the standing cluster: the sections `cluster` and `pods`."""

from __future__ import annotations

from runtender.local.container import core as gke
from runtender.local.kubernetes.resources import RESOURCES
from runtender.local.scenario.cluster_rules import ClusterRule, PodBlow, PodRule
from runtender.local.scenario.reading import Keys, Reader, word_of

_VERBS = ("create", "get", "list", "watch", "update", "patch", "delete", "deletecollection")
CLUSTER_METHODS = (
    *gke.METHODS,
    *(f"kubernetes.{plural}.{verb}" for plural in RESOURCES for verb in _VERBS),
    "kubernetes.pods.log.get",
    "kubernetes.version.get",
)
"""The ids of GKE's and Kubernetes' methods that a rule about calls can name."""

_CLUSTER: Keys = {
    "nodes": ("nodes", Reader.whole),
    "more": ("more", Reader.whole),
    "at": ("at", Reader.duration),
    "missing_images": ("missing_images", Reader.texts),
}
_POD: Keys = {
    "happens": ("blow", word_of(PodBlow)),
    "index": ("index", Reader.whole),
    "attempt": ("attempt", Reader.whole),
    "after": ("after", Reader.duration),
    "first": ("first", Reader.whole),
    "exit_code": ("exit_code", Reader.whole),
    "out_of_memory": ("out_of_memory", Reader.truth),
}


def read_cluster(reader: Reader, path: str, value: object) -> ClusterRule:
    """Read the section `cluster`."""
    return ClusterRule(**reader.record(path, value, _CLUSTER) or {})


def read_pod(reader: Reader, path: str, value: object) -> PodRule | None:
    """Read one entry of the section `pods`."""
    fields = reader.record(path, value, _POD, required=("happens",))
    return None if fields is None else PodRule(**fields)
