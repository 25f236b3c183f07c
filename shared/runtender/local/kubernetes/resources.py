"""The kinds of objects that the simulated Kubernetes keeps, as its discovery shows them and its paths name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """One kind. `group` is "" for the core API; `subresources` are the parts that have paths of their own.

    `keeps_generation`: its `metadata.generation` counts changes of its spec.
    """

    plural: str
    kind: str
    group: str = ""
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, tuple[str, ...]]
    keeps_generation: bool = False

    @property
    def singular(self) -> str:
        """The name that a command line takes for one of them."""
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        """What its objects say as `apiVersion`."""
        return f"{self.group}/v1" if self.group else "v1"

    @property
    def verbs(self) -> tuple[str, ...]:
        """What can be asked of them."""
        return _ALL_VERBS

    @property
    def qualified(self) -> str:
        """The name that messages give it (`jobs.batch`)."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


_STATUS = {"status": ("get", "patch", "update")}

RESOURCES: Mapping[str, Resource] = {
    resource.plural: resource
    for resource in (
        Resource(plural="configmaps", kind="ConfigMap", short_names=("cm",), subresources={}),
        Resource(plural="events", kind="Event", short_names=("ev",), subresources={}),
        Resource(
            plural="namespaces", kind="Namespace", namespaced=False, short_names=("ns",), subresources=_STATUS
        ),
        Resource(plural="nodes", kind="Node", namespaced=False, short_names=("no",), subresources=_STATUS),
        Resource(
            plural="pods",
            kind="Pod",
            short_names=("po",),
            categories=("all",),
            subresources={**_STATUS, "log": ("get",), "eviction": ("create",)},
        ),
        Resource(plural="resourcequotas", kind="ResourceQuota", short_names=("quota",), subresources=_STATUS),
        Resource(plural="secrets", kind="Secret", subresources={}),
        Resource(plural="serviceaccounts", kind="ServiceAccount", short_names=("sa",), subresources={}),
        Resource(
            plural="services",
            kind="Service",
            short_names=("svc",),
            categories=("all",),
            subresources=_STATUS,
        ),
        Resource(
            plural="deployments",
            kind="Deployment",
            group="apps",
            short_names=("deploy",),
            categories=("all",),
            subresources=_STATUS,
            keeps_generation=True,
        ),
        Resource(
            plural="jobs",
            kind="Job",
            group="batch",
            categories=("all",),
            subresources=_STATUS,
            keeps_generation=True,
        ),
    )
}

BY_KIND: Mapping[str, Resource] = {resource.kind: resource for resource in RESOURCES.values()}
"""The resources by the `kind` of their objects."""

GROUPS = ("apps", "batch")
"""The named API groups, each with one version."""
