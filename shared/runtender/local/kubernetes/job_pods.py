"""A Job and its pods: how a pod is made of the Job's template, and which of them count as what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.local.kubernetes.documents import (
    Document,
    annotations_of,
    copied,
    finalizers_of,
    holds,
    is_ending,
    name_of,
    namespace_of,
    owner_reference,
)
from runtender.local.kubernetes.pods import is_over, phase_of

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its Job has counted it."""

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"

_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def is_indexed(job: Mapping[str, Any]) -> bool:
    """True for a Job whose pods are told apart by an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Document) -> int | None:
    """Return a pod's completion index."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else None


def replaces_failed_only(job: Mapping[str, Any]) -> bool:
    """True for a Job that makes no new pod while the last one may still run."""
    spec = job["spec"]
    return spec.get("podReplacementPolicy") == "Failed" or bool(spec.get("podFailurePolicy"))


def has_failed(job: Mapping[str, Any], pod: Document) -> bool:
    """True for a pod that counts as failed. One that is only told to end does where replacements need not wait for it."""
    if phase_of(pod) == "Failed":
        return True
    if not is_ending(pod) or phase_of(pod) == "Succeeded":
        return False
    return phase_of(pod) == "Pending" if replaces_failed_only(job) else True


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPods:
    """The pods of a Job. `fresh` have ended, well or badly, and are not counted yet."""

    active: tuple[Document, ...]
    ending: tuple[Document, ...]
    fresh: tuple[Document, ...]

    @classmethod
    def sort(cls, job: Mapping[str, Any], pods: Iterable[Document]) -> JobPods:
        """Tell a Job's pods apart."""
        listed = tuple(pods)
        tracked = [pod for pod in listed if TRACKING in finalizers_of(pod)]
        return cls(
            active=tuple(pod for pod in listed if not is_over(pod) and not is_ending(pod)),
            ending=tuple(pod for pod in listed if not is_over(pod) and is_ending(pod)),
            fresh=tuple(pod for pod in tracked if phase_of(pod) == "Succeeded" or has_failed(job, pod)),
        )

    @property
    def still(self) -> bool:
        """True when none is at work any more."""
        return not self.active and not self.ending

    @property
    def ready(self) -> int:
        """How many pods are up."""
        return sum(1 for pod in self.active if holds(pod, "Ready"))

    @property
    def taken(self) -> frozenset[int]:
        """The indexes that a pod is at work on."""
        return frozenset(index for pod in self.active if (index := index_of(pod)) is not None)


def make_pod(job: Document, index: int | None, *, suffix: str, failures: int | None) -> Document:
    """Return a new pod of a Job, for one index of an Indexed one. `failures` of the index so far are noted on it."""
    template = copied(job["spec"]["template"])
    metadata = template.get("metadata") or {}
    prefix = name_of(job) if index is None else f"{name_of(job)}-{index}"
    annotations = dict(metadata.get("annotations") or {})
    labels = dict(metadata.get("labels") or {})
    spec = template["spec"]
    if index is not None:
        annotations[INDEX] = labels[INDEX] = str(index)
        spec.setdefault("hostname", prefix)
        for container in (*spec["containers"], *(spec.get("initContainers") or ())):
            _add_index(container)
    if failures is not None:
        annotations[FAILURES] = str(failures)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{prefix}-{suffix}",
            "generateName": f"{prefix}-",
            "namespace": namespace_of(job),
            "labels": labels,
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner_reference(job)],
            "finalizers": [TRACKING],
        },
        "spec": spec,
    }


def _add_index(container: Document) -> None:
    env = container.setdefault("env", [])
    if all(entry["name"] != _INDEX_VARIABLE for entry in env):
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        env.append({"name": _INDEX_VARIABLE, "valueFrom": source})
