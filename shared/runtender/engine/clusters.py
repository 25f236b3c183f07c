"""Standing clusters: looked up when a message names one, and remembered so that ticks know where to list Jobs.

A lookup only reads. A name without a place is looked for at home first and then over the whole project; where it stands
more than once, the message's author has to say which is meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from runtender.capacity.classify import classify_http
from runtender.engine.plane import Plane
from runtender.errors import Rejected, Retryable
from runtender.model import JobPlan, Verdict
from runtender.observed import ClusterFacts
from runtender.ports import Api, ApiAnswer, ApiRequest, Increment
from runtender.settings import Settings
from runtender.wire.documents import SCHEMA

if TYPE_CHECKING:
    # The planner, which ticks do not need.
    from runtender.forecast.gke_run import ClusterName

GKE = "gke"
_FIELD = "compute.gke_cluster_name"
# Nothing lives longer than a machine may (120 days); what is older has been swept.
_REMEMBERED_FOR = timedelta(days=130)
_MOST_CLUSTERS = 1000
# A cluster that is being mended or upgraded still takes jobs.
_AT_WORK = frozenset({"RUNNING", "RECONCILING", "DEGRADED"})


class MayNotLook(Rejected):
    """Whoever looks for a cluster has no right to, or asks in a way that the API does not take."""


def read_clusters(
    settings: Settings, api: Api, wanted: Iterable[ClusterName]
) -> dict[ClusterName, ClusterFacts]:
    """Return what there is to know of each cluster.

    Raises `Rejected` for one that is not there, stands more than once, or cannot take a job, `MayNotLook` among them;
    `Retryable` when the APIs do not answer.
    """
    lookup = _Lookup(settings, api)
    return {named: lookup.read(named) for named in sorted(wanted, key=str)}


def remember_clusters(plane: Plane, plans: Iterable[JobPlan]) -> list[Increment]:
    """Return the writes that make ticks look at the plans' clusters. They need no precondition and may be repeated."""
    standing = [plan.kubernetes for plan in plans if plan.kubernetes is not None]
    places = {(one.cluster_location, one.cluster_name) for one in standing if one.cluster_location}
    until = plane.clock.now() + _REMEMBERED_FOR
    return [
        Increment(
            path=f"clusters/{location}_{name}",
            amounts={"jobs": 1},
            fields={
                "schema": SCHEMA,
                "name": f"projects/{plane.settings.project}/locations/{location}/clusters/{name}",
                "expires_at": until,
            },
        )
        for location, name in sorted(places)
    ]


def known_clusters(plane: Plane) -> tuple[str, ...]:
    """Return the full names of all clusters that may have Jobs of this plane."""
    found = plane.store.find("clusters", limit=_MOST_CLUSTERS)
    return tuple(str(snapshot.data["name"]) for snapshot in found)


@dataclass(frozen=True, slots=True)
class _Lookup:
    settings: Settings
    api: Api

    def read(self, named: ClusterName) -> ClusterFacts:
        from runtender.runtimes import cluster  # noqa: PLC0415 - most planes make VMs only

        project, home = self.settings.project, named.location or self.settings.region
        answer = self._send(named, cluster.get_cluster(project, home, named.name))
        facts = cluster.read_cluster(answer.body) if answer.ok else self._anywhere(named)
        if facts is None:
            place = f"in {named.location}" if named.location else f"in project {project}"
            raise _fault(
                named,
                f"there is none {place}",
                "name one that stands, here or by SF_GKE_CLUSTER",
            )
        if facts.status not in _AT_WORK or not facts.has_endpoint:
            raise _fault(named, f"is {facts.status}", "wait until it is RUNNING, or name another")
        minor = cluster.read_version(self._send(named, cluster.version_of(facts.full_name)))
        return facts if minor is None else replace(facts, server_minor=minor)

    def _anywhere(self, named: ClusterName) -> ClusterFacts | None:
        """Look over all locations; a name that was given with its place has no other."""
        from runtender.runtimes import cluster  # noqa: PLC0415 - the same

        if named.location is not None:
            return None
        answer = self._send(named, cluster.list_clusters(self.settings.project))
        listed = cluster.read_clusters(answer)
        if listed is None:
            zones = ", ".join(answer.body.get("missingZones") or ())
            raise Retryable(f"cluster {named.name!r} is looked for, but not all zones answered: {zones}")
        chosen = cluster.choose_cluster(named.name, listed)
        if isinstance(chosen, cluster.Ambiguity):
            problem = f"stands in {', '.join(chosen.places)}"
            raise _fault(named, problem, f"say which, e.g. {chosen.places[0]}/{named.name}")
        return chosen

    def _send(self, named: ClusterName, request: ApiRequest) -> ApiAnswer:
        """Send a look; what says that we may not look is the deployment's fault and will not pass by itself."""
        answer = self.api.send(request)
        if answer.ok or answer.status == 404:
            return answer
        # A 403 can also mean that there were too many calls.
        if answer.status in {400, 401, 403} and classify_http(answer).verdict is not Verdict.RATE_LIMITED:
            problem = f"{request.method_id} answered {answer.status}: {answer.text[:300]}"
            raise MayNotLook(_fault(named, problem, "grant the plane's account that permission").faults)
        raise Retryable(f"{request.method_id} of {named.name!r} answered {answer.status}")


def _fault(named: ClusterName, problem: str, remedy: str) -> Rejected:
    return Rejected.because(_FIELD, f"cluster {named.name!r}: {problem}", remedy)
