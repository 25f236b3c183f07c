"""What people and the platform do to a cluster that is none of the plane's doing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.documents import Document, name_of, namespace_of

_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_CORE = "/api/v1/namespaces/default"


class Interference:
    """Acts on one cluster, unwatched and in any weather. `strangers` are the UIDs of Jobs that somebody else has made."""

    def __init__(
        self, core: KubernetesCore, now: Callable[[], datetime], note: Callable[[str], None]
    ) -> None:
        self.strangers: set[str] = set()
        self._core = core
        self._now = now
        self._note = note

    def delete_job(self, job: Document, propagation: str = "Background") -> None:
        """Let a person delete a Job."""
        self._note(f"somebody deletes Job {name_of(job)}: {propagation}")
        path = f"{_JOBS}/{name_of(job)}"
        self._apply(HttpRequest(method="DELETE", path=path, query={"propagationPolicy": propagation}))

    def delete_pod(self, pod: Document) -> None:
        """Let a person delete a pod."""
        self._note(f"somebody deletes pod {name_of(pod)}")
        path = f"/api/v1/namespaces/{namespace_of(pod)}/pods/{name_of(pod)}"
        self._apply(HttpRequest(method="DELETE", path=path))

    def place_job(self, name: str, labels: Mapping[str, str]) -> None:
        """Let somebody else have a Job of this name, if it is free."""
        container = {"name": "main", "image": "docker.io/library/busybox", "command": ["true"]}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": dict(labels)}}
        answer = self._put(_JOBS, {**job, "spec": {"template": template}})
        if answer.status == 201:
            self._note(f"somebody else has a Job {name}")
            self.strangers.add(answer.json()["metadata"]["uid"])

    def limit_pods(self, most: int) -> None:
        """Let the namespace have a quota of pods."""
        self._note(f"the namespace may have {most} pods")
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
        self._put(f"{_CORE}/resourcequotas", {**quota, "spec": {"hard": {"pods": str(most)}}})

    def lift_limit(self) -> None:
        """Let the namespace have no quota."""
        self._apply(HttpRequest(method="DELETE", path=f"{_CORE}/resourcequotas/few"))

    def _put(self, path: str, document: Mapping[str, Any]) -> HttpResponse:
        return self._apply(HttpRequest(method="POST", path=path, body=json.dumps(document).encode()))

    def _apply(self, request: HttpRequest) -> HttpResponse:
        return self._core.apply(request, self._now())
