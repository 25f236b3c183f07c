"""Standing clusters: looked up when a message names one, and remembered so that ticks know where to list Jobs.

A lookup only reads. A name without a place is looked for at home first and then over the whole project; where it stands
more than once, the message's author has to say which is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from runtender.engine.plane import Plane
from runtender.errors import Rejected, Retryable
from runtender.forecast.gke_run import GKE, ClusterName
from runtender.model import JobPlan
from runtender.observed import ClusterFacts
from runtender.ports import ApiAnswer, ApiRequest, Increment
from runtender.wire.documents import SCHEMA

_FIELD = "cluster_name"
# Nothing lives longer than a machine may (120 days); what is older has been swept.
_REMEMBERED_FOR = timedelta(days=130)
_MOST_CLUSTERS = 1000


def read_clusters(plane: Plane, wanted: Iterable[ClusterName]) -> dict[ClusterName, ClusterFacts]:
    """Return what there is to know of each cluster.

    Raises `Rejected` for one that is not there, stands more than once, or cannot take a job; `Retryable` when the APIs do
    not answer.
    """
    return {named: _read(plane, named) for named in sorted(wanted, key=str)}


def remember_clusters(plane: Plane, plans: Iterable[JobPlan]) -> list[Increment]:
    """Return the writes that make ticks look at the plans' clusters. They need no precondition and may be repeated."""
    names = {
        full_name(plane, plan.kubernetes.cluster_location, plan.kubernetes.cluster_name)
        for plan in plans
        if plan.kubernetes is not None and plan.kubernetes.cluster_location is not None
    }
    until = plane.clock.now() + _REMEMBERED_FOR
    return [
        Increment(
            path=f"clusters/{name.replace('/', '_')}",
            amounts={"jobs": 1},
            fields={"schema": SCHEMA, "name": name, "expires_at": until},
        )
        for name in sorted(names)
    ]


def known_clusters(plane: Plane) -> tuple[str, ...]:
    """Return the full names of all clusters that may have Jobs of this plane."""
    found = plane.store.find("clusters", limit=_MOST_CLUSTERS)
    return tuple(str(snapshot.data["name"]) for snapshot in found)


def full_name(plane: Plane, location: str, name: str) -> str:
    """Return a cluster's full resource name."""
    return f"projects/{plane.settings.project}/locations/{location}/clusters/{name}"


def _read(plane: Plane, named: ClusterName) -> ClusterFacts:
    from runtender.runtimes import cluster  # noqa: PLC0415 - most planes make VMs only

    project, home = plane.settings.project, named.location or plane.settings.region
    answer = _send(plane, named, cluster.get_cluster(project, home, named.name))
    facts = cluster.read_cluster(answer.body) if answer.ok else _anywhere(plane, named)
    if facts is None:
        place = f"in {named.location}" if named.location else f"in project {project}"
        raise _fault(named, f"there is none {place}", "name a cluster that stands, or its location")
    if facts.status not in {"RUNNING", "RECONCILING", "DEGRADED"} or not facts.has_endpoint:
        raise _fault(named, f"is {facts.status}", "wait until it is RUNNING, or name another")
    version = _send(plane, named, cluster.version_of(facts.full_name))
    minor = cluster.minor_of(version.body) if version.ok else None
    return replace(facts, server_minor=minor) if minor is not None else facts


def _anywhere(plane: Plane, named: ClusterName) -> ClusterFacts | None:
    """Look over all locations; a name that was given with its place has no other."""
    from runtender.runtimes import cluster  # noqa: PLC0415 - the same

    if named.location is not None:
        return None
    answer = _send(plane, named, cluster.list_clusters(plane.settings.project))
    listed = [cluster.read_cluster(body) for body in answer.body.get("clusters") or ()]
    found = [facts for facts in listed if facts.name == named.name]
    if len(found) > 1:
        places = ", ".join(sorted(facts.location for facts in found))
        raise _fault(named, f"stands in {places}", "say which with overrides.<family>.cluster_location")
    if not found and answer.body.get("missingZones"):
        zones = ", ".join(answer.body["missingZones"])
        raise Retryable(f"cluster {named.name!r} was not found, but {zones} did not answer")
    return found[0] if found else None


def _send(plane: Plane, named: ClusterName, request: ApiRequest) -> ApiAnswer:
    """Send a look; what says that we may not look is the deployment's fault and will not pass by itself."""
    answer = plane.apis[GKE].send(request)
    if answer.ok or answer.status == 404:
        return answer
    if answer.status in {400, 401, 403}:
        problem = f"{request.method_id} answered {answer.status}: {answer.text[:300]}"
        raise _fault(named, problem, "grant the plane's account that permission")
    raise Retryable(f"{request.method_id} of {named.name!r} answered {answer.status}")


def _fault(named: ClusterName, problem: str, remedy: str) -> Rejected:
    return Rejected.because(_FIELD, f"cluster {named.name!r}: {problem}", remedy)
