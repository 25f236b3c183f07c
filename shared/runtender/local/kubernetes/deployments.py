"""The Deployment controller, made simple: it keeps as many pods as are asked for, without ReplicaSets between.

A pod that is gone is replaced, and so is one of an older template, all at once. What restarts inside a pod is the node's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from runtender.local.kubernetes.admission import Admission
from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.deletion import begin_deletion
from runtender.local.kubernetes.documents import (
    Document,
    Key,
    controller_of,
    copied,
    holds,
    is_ending,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    set_condition,
    uid_of,
)
from runtender.local.kubernetes.errors import StatusError
from runtender.local.kubernetes.pods import is_over, pod_key
from runtender.local.kubernetes.recorder import Recorder
from runtender.local.kubernetes.store import Change, ChangeType

SOURCE = "deployment-controller"

_HASH = "pod-template-hash"
_HASH_LENGTH = 10


class DeploymentController:
    """Looks after the Deployments of a cluster."""

    def __init__(self, cluster: Cluster, recorder: Recorder, admission: Admission) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._admission = admission
        cluster.store.subscribe(self._hear)

    def _hear(self, change: Change) -> None:
        if change.key.resource == "deployments" and change.type is not ChangeType.DELETED:
            self._cluster.wake(self._sync, change.key)
        elif change.key.resource == "pods":
            owner = controller_of(change.document)
            if owner is not None and owner["kind"] == "Deployment":
                key = Key(resource="deployments", namespace=change.key.namespace, name=owner["name"])
                self._cluster.wake(self._sync, key)

    def _sync(self, key: Key) -> None:
        deployment = self._cluster.store.get(key)
        if deployment is None or is_ending(deployment):
            return
        version = _version(deployment)
        for pod in self._pods(deployment):
            if is_over(pod) or labels_of(pod).get(_HASH) != version:
                begin_deletion(self._cluster, pod_key(pod))
        current = [pod for pod in self._pods(deployment) if labels_of(pod).get(_HASH) == version]
        wanted = int(deployment["spec"].get("replicas", 1))
        for pod in current[wanted:]:
            begin_deletion(self._cluster, pod_key(pod))
        for _ in range(wanted - len(current)):
            if not self._make(key, deployment, version):
                break
        self._write(key, self._pods(deployment), version)

    def _pods(self, deployment: Document) -> list[Document]:
        owned = self._cluster.store.owned_by(uid_of(deployment), "pods")
        return [pod for pod in owned if not is_ending(pod)]

    def _make(self, key: Key, deployment: Document, version: str) -> bool:
        template = copied(deployment["spec"]["template"])
        prefix = f"{name_of(deployment)}-{version}"
        pod: Document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **(template.get("metadata") or {}),
                "name": f"{prefix}-{self._cluster.suffix()}",
                "generateName": f"{prefix}-",
                "namespace": namespace_of(deployment),
                "labels": {**labels_of(template), _HASH: version},
                "ownerReferences": [owner_reference(deployment)],
            },
            "spec": template["spec"],
        }
        try:
            self._admission.admit("pods", pod)
        except StatusError as refusal:
            self._recorder.warning(deployment, SOURCE, "FailedCreate", f"Error creating: {refusal}")
            self._cluster.later(
                self._cluster.timings.create_retry, lambda: self._cluster.wake(self._sync, key)
            )
            return False
        self._cluster.store.put("pods", self._cluster.complete(pod))
        self._recorder.normal(deployment, SOURCE, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        return True

    def _write(self, key: Key, pods: Sequence[Document], version: str) -> None:
        now = self._cluster.now
        updated = [pod for pod in pods if labels_of(pod).get(_HASH) == version]
        ready = sum(1 for pod in updated if holds(pod, "Ready"))

        def write(deployment: Document) -> None:
            wanted = int(deployment["spec"].get("replicas", 1))
            counts = {
                "replicas": len(pods),
                "updatedReplicas": len(updated),
                "readyReplicas": ready,
                "availableReplicas": ready,
                "unavailableReplicas": max(0, wanted - ready),
            }
            before = deployment.get("status") or {}
            deployment["status"] = {
                "observedGeneration": deployment["metadata"]["generation"],
                **{name: count for name, count in counts.items() if count},
                "conditions": copied(before.get("conditions") or []),
            }
            enough = ready >= wanted
            reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
            set_condition(deployment, "Available", enough, now, reason=reason)
            progress = "NewReplicaSetAvailable" if enough else "ReplicaSetUpdated"
            set_condition(deployment, "Progressing", True, now, reason=progress)
            for condition in deployment["status"]["conditions"]:
                condition["lastUpdateTime"] = condition["lastTransitionTime"]

        self._cluster.store.edit(key, write)


def _version(deployment: Document) -> str:
    text = json.dumps(deployment["spec"]["template"], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]
