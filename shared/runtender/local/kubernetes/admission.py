"""What an object has to find before it may be made: its namespace, its service account, and room in the quotas."""

from __future__ import annotations

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, is_ending, metadata_of, namespace_of
from runtender.local.kubernetes.errors import forbidden, not_found
from runtender.local.kubernetes.quantities import Amounts, requests_of
from runtender.local.kubernetes.quotas import Quotas
from runtender.local.kubernetes.resources import RESOURCES


class Admission:
    """Lets new objects in, or refuses them. Controllers go through it like everybody else."""

    def __init__(self, cluster: Cluster, quotas: Quotas) -> None:
        self._cluster = cluster
        self._quotas = quotas

    def admit(self, resource: str, document: Document) -> None:
        """Check a new object and fill in what follows from where it will be; raises `StatusError` for a refusal."""
        if RESOURCES[resource].namespaced:
            self._check_namespace(resource, document)
        if resource == "pods":
            self._admit_pod(document)
        self._quotas.check(resource, document)

    def _check_namespace(self, resource: str, document: Document) -> None:
        name = namespace_of(document)
        found = self._cluster.store.get(Key(resource="namespaces", namespace="", name=name))
        if found is None:
            raise not_found(RESOURCES["namespaces"], name)
        if is_ending(found):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            raise forbidden(RESOURCES[resource], _shown_name(document), why)

    def _admit_pod(self, pod: Document) -> None:
        spec = pod["spec"]
        account = spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", account)
        namespace = namespace_of(pod)
        if (
            self._cluster.store.get(Key(resource="serviceaccounts", namespace=namespace, name=account))
            is None
        ):
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden(RESOURCES["pods"], _shown_name(pod), why)
        pod["status"] = {"phase": "Pending", "qosClass": _quality(requests_of(spec), pod)}


def _shown_name(document: Document) -> str:
    metadata = metadata_of(document)
    return str(metadata.get("generateName") or metadata.get("name", ""))


def _quality(requests: Amounts, pod: Document) -> str:
    """Return how easily a pod is evicted: one that asks for nothing first, one with equal limits last."""
    containers = pod["spec"]["containers"]
    if len(requests) == 1:
        return "BestEffort"
    sure = all(
        {"cpu", "memory"} <= set((one.get("resources") or {}).get("limits") or {})
        and one["resources"].get("requests", one["resources"]["limits"]) == one["resources"]["limits"]
        for one in containers
    )
    return "Guaranteed" if sure else "Burstable"
