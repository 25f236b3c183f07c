"""The runtime `gke` in mode `job`: an Indexed Job on a cluster that stands. Nouns to API calls, API answers to observations.

Who a Job is says its label `sf-nonce` and its uid, not its name. A delete carries the uid, or goes by label where no answer
has told the uid, so that it can never hit somebody else's Job. What cannot be read is no observation (None); only
Kubernetes' own 404 says that something is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtender.capacity.kubernetes import classify_status, status_of
from runtender.forecast.gke import plan_json
from runtender.model import Job, Reason, Resource, ResourceKind, Verdict
from runtender.observed import (
    Absent,
    Accepted,
    CreateAnswer,
    DeleteAnswer,
    Fate,
    NameTaken,
    OperationSeen,
    PodsSeen,
    Sight,
    Unclear,
)
from runtender.ports import ApiAnswer, ApiRequest, FleetPage, Remain
from runtender.runtimes.cluster import JobPlace, full_name, job_name, region_of
from runtender.runtimes.gke_answers import items, part, read_fleet, read_job, text
from runtender.runtimes.gke_body import CONTAINER, indexed_job
from runtender.runtimes.gke_pods import read_pods
from runtender.runtimes.kube import RUNTIME, Bearing
from runtender.settings import Settings

METHODS = (
    "container.projects.locations.clusters.get",
    "container.projects.locations.clusters.list",
    "kubernetes.events.list",
    "kubernetes.jobs.create",
    "kubernetes.jobs.delete",
    "kubernetes.jobs.deletecollection",
    "kubernetes.jobs.get",
    "kubernetes.jobs.list",
    "kubernetes.pods.deletecollection",
    "kubernetes.pods.list",
    "kubernetes.pods.log.get",
    "kubernetes.version.get",
)
"""Every API method that jobs on GKE need, also those that find their cluster: what to give permission for."""

PODS_KIND = "pods"
LOG_LINES = 60
"""The last lines of a failed pod's log that are asked for."""

# A line of a log has no bound of its own; an answer's text has this one.
_LOG_BYTES = 64 * 1024
# Each carries the whole program of its worker, some 30 KB, and a page is held in memory.
_JOBS_PAGE, _PODS_PAGE = "100", "100"
_EVENTS_PAGE = "500"
_OPTIONS: Mapping[str, Any] = {
    "apiVersion": "v1",
    "kind": "DeleteOptions",
    "propagationPolicy": "Background",
}


class GkeJob:
    """Indexed Jobs on a standing cluster as a `Runtime`, and as `Podded` (see `ports` for each method)."""

    name = RUNTIME
    kind = ResourceKind.JOB
    page_key = "continue"

    def create(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        bearing = Bearing(job=job, row=row, settings=settings)
        return _call(
            bearing,
            "kubernetes.jobs.create",
            "POST",
            _jobs(bearing),
            # A field that the server does not know would be dropped without a word.
            query={"fieldValidation": "Strict"},
            body=indexed_job(bearing),
            creates=True,
        )

    def created(self, answer: ApiAnswer) -> CreateAnswer:
        if answer.ok:
            return Accepted(target_id=text(part(answer.body, "metadata"), "uid") or None)
        refusal = classify_status(answer)
        if refusal.verdict is Verdict.ADOPT:
            return NameTaken()
        if answer.status in {0, 408} or answer.status >= 500:
            return Unclear(detail=f"HTTP {answer.status}: {refusal.message}")
        return refusal

    def describe(self, job: Job, row: Resource, settings: Settings) -> Mapping[str, Any]:
        kubernetes = Bearing(job=job, row=row, settings=settings).kubernetes
        place = JobPlace(
            location=row.location,
            cluster=kubernetes.cluster_name,
            namespace=kubernetes.namespace,
            job=row.name,
        )
        return {
            "gke_job": {**plan_json(job.plan), "cluster_location": row.location},
            "probe_handle": {
                "runtime": RUNTIME,
                "native_id": row.name,
                "region": region_of(row.location),
                "id_kind": "exact",
                "resource_name": job_name(settings.project, place),
            },
        }

    def operation(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        # A Job is made by the call itself: there is nothing else to look at.
        return self.look(job, row, settings)

    def operated(self, answer: ApiAnswer) -> OperationSeen | None:
        return None if self.looked(answer) is None else OperationSeen(done=True)

    def look(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        bearing = Bearing(job=job, row=row, settings=settings)
        return _call(bearing, "kubernetes.jobs.get", "GET", f"{_jobs(bearing)}/{row.name}")

    def looked(self, answer: ApiAnswer) -> Sight | None:
        if answer.status == 404:
            return Absent() if _is_absence(answer) else None
        return read_job(answer.body) if answer.ok else None

    def delete(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        bearing, uid = Bearing(job=job, row=row, settings=settings), row.target_id or row.uid
        if uid is None:
            # Its create was never answered: by label it is ours, whatever else has the name.
            method, query = "kubernetes.jobs.deletecollection", _ours(bearing)
            return _call(bearing, method, "DELETE", _jobs(bearing), query=query, body=_OPTIONS)
        body = {**_OPTIONS, "preconditions": {"uid": uid}}
        path = f"{_jobs(bearing)}/{row.name}"
        return _call(bearing, "kubernetes.jobs.delete", "DELETE", path, body=body)

    def deleted(self, answer: ApiAnswer) -> DeleteAnswer:
        if answer.ok:
            return DeleteAnswer(accepted=True)
        status = status_of(answer)
        # The name is another's by now, so ours is gone.
        replaced = answer.status == 409 and "precondition failed" in status.message.lower()
        if replaced or (answer.status == 404 and _is_absence(answer)):
            return DeleteAnswer(gone=True)
        return DeleteAnswer(detail=f"HTTP {answer.status}: {status.message}")

    def remains(self, job: Job, row: Resource, settings: Settings) -> tuple[Remain, ...]:
        bearing = Bearing(job=job, row=row, settings=settings)
        path, ours = _core(bearing, "pods"), _ours(bearing)
        look = _call(bearing, "kubernetes.pods.list", "GET", path, query={**ours, "limit": "1"})
        delete = _call(bearing, "kubernetes.pods.deletecollection", "DELETE", path, query=ours)
        return (Remain(kind=PODS_KIND, name=f"{row.name} pods", look=look, delete=delete, is_list=True),)

    def fate(self, job: Job, row: Resource, settings: Settings) -> ApiRequest | None:
        return None

    def fated(self, row: Resource, answers: Sequence[ApiAnswer]) -> Fate | None:
        # No Job that has not finished goes by itself.
        return Fate(reason=Reason.JOB_DELETED, deleted=True)

    def serial(self, job: Job, row: Resource, settings: Settings) -> ApiRequest | None:
        return None

    def last_words(self, answer: ApiAnswer, row: Resource) -> bytes | None:
        return None

    def fleets(self, settings: Settings, clusters: Sequence[str]) -> tuple[ApiRequest, ...]:
        mine = f"sf-plane={settings.plane_id},sf-kind={ResourceKind.JOB}"
        return tuple(
            ApiRequest(
                method_id="kubernetes.jobs.list",
                verb="GET",
                # Over all namespaces: which ones jobs are in, only their documents know.
                path="/apis/batch/v1/jobs",
                query={"labelSelector": mine, "limit": _JOBS_PAGE},
                cluster=cluster,
            )
            for cluster in clusters
        )

    def fleet_page(self, answer: ApiAnswer) -> FleetPage | None:
        return read_fleet(answer.body) if answer.ok else None

    def pods(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        bearing = Bearing(job=job, row=row, settings=settings)
        query = {**_ours(bearing), "limit": _PODS_PAGE}
        return _call(bearing, "kubernetes.pods.list", "GET", _core(bearing, "pods"), query=query)

    def events(self, job: Job, row: Resource, settings: Settings) -> ApiRequest:
        bearing = Bearing(job=job, row=row, settings=settings)
        query = {"fieldSelector": "type=Warning", "limit": _EVENTS_PAGE}
        return _call(bearing, "kubernetes.events.list", "GET", _core(bearing, "events"), query=query)

    def podded(self, row: Resource, pods: Sequence[ApiAnswer], events: ApiAnswer) -> PodsSeen | None:
        if not pods or not all(page.ok for page in pods) or text(part(pods[-1].body, "metadata"), "continue"):
            return None
        listed = [pod for page in pods for pod in items(page.body, "items")]
        return read_pods(row, listed, items(events.body, "items") if events.ok else [])

    def pod_log(self, job: Job, row: Resource, pod: str, settings: Settings) -> ApiRequest:
        bearing = Bearing(job=job, row=row, settings=settings)
        query = {"container": CONTAINER, "tailLines": str(LOG_LINES), "limitBytes": str(_LOG_BYTES)}
        path = f"{_core(bearing, 'pods')}/{pod}/log"
        return _call(bearing, "kubernetes.pods.log.get", "GET", path, query=query)


def _call(
    bearing: Bearing,
    method_id: str,
    verb: str,
    path: str,
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    creates: bool = False,
) -> ApiRequest:
    """Return a call of the Kubernetes API of the cluster that a row is on."""
    project, location = bearing.settings.project, bearing.row.location
    return ApiRequest(
        method_id=method_id,
        verb=verb,
        path=path,
        query=query or {},
        body=body,
        creates=creates,
        cluster=full_name(project, location, bearing.kubernetes.cluster_name),
    )


def _jobs(bearing: Bearing) -> str:
    return f"/apis/batch/v1/namespaces/{bearing.kubernetes.namespace}/jobs"


def _core(bearing: Bearing, plural: str) -> str:
    return f"/api/v1/namespaces/{bearing.kubernetes.namespace}/{plural}"


def _ours(bearing: Bearing) -> dict[str, str]:
    return {"labelSelector": f"sf-nonce={bearing.row.nonce},sf-plane={bearing.settings.plane_id}"}


def _is_absence(answer: ApiAnswer) -> bool:
    """True where Kubernetes itself, or the lookup of its cluster, said the 404; a proxy's page says nothing."""
    return status_of(answer).spoken or not answer.text
