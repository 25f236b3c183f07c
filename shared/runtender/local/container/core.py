"""The simulated GKE API: which clusters a project has, and how each is reached.

Like the other cores it has no transport and no clock. Clusters are put there by whoever sets the stage; the API shows them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runtender.local.container.clusters import GkeCluster
from runtender.local.http import Faults, HttpRequest, HttpResponse, google_error, json_response, no_faults

GET = "container.projects.locations.clusters.get"
LIST = "container.projects.locations.clusters.list"
METHODS = (GET, LIST)
"""The ids of the methods that are simulated."""

_EVERYWHERE = "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """A call, taken apart. `name` is "" for a list."""

    method_id: str
    project: str
    location: str
    name: str


class ContainerCore:
    """One project's GKE. Not safe for threads: whoever serves it lets one caller in at a time."""

    def __init__(
        self, *, project: str, clusters: Iterable[GkeCluster] = (), faults: Faults = no_faults
    ) -> None:
        self._project = project
        self._faults = faults
        self._counts: Counter[str] = Counter()
        self._missing: tuple[str, ...] = ()
        self._clusters: dict[tuple[str, str], GkeCluster] = {}
        for cluster in clusters:
            self.put(cluster)

    def put(self, cluster: GkeCluster) -> None:
        """Let a cluster be there, in place of the one of its name and location."""
        self._clusters[cluster.location, cluster.name] = cluster

    def remove(self, location: str, name: str) -> None:
        """Let a cluster be gone."""
        self._clusters.pop((location, name), None)

    def silence(self, zones: Iterable[str]) -> None:
        """Let these locations, and no others, be missing from lists over the project."""
        self._missing = tuple(zones)

    def handle(self, request: HttpRequest, _now: datetime) -> HttpResponse:
        """Answer one request as GKE would."""
        call = _find_call(request)
        if call is None:
            message = f"no simulated method is {request.method} {request.path}"
            return google_error(404, "notFound", message, word="NOT_FOUND")
        self._counts[call.method_id] += 1
        fault = self._faults(call.method_id, request)
        return self._answer(call) if fault is None else fault.answer

    def counts(self) -> dict[str, int]:
        """Return how often each method was called."""
        return dict(self._counts)

    def clusters(self) -> tuple[GkeCluster, ...]:
        """Return the clusters that are there, ordered by location and name."""
        return tuple(self._clusters[where] for where in sorted(self._clusters))

    def _answer(self, call: _Call) -> HttpResponse:
        if call.project != self._project:
            message = f"Permission denied on resource project {call.project}."
            return google_error(403, "forbidden", message, word="PERMISSION_DENIED")
        return self._get(call) if call.name else self._list(call)

    def _get(self, call: _Call) -> HttpResponse:
        cluster = self._clusters.get((call.location, call.name))
        if cluster is None:
            where = f"projects/{call.project}/locations/{call.location}/clusters/{call.name}"
            return google_error(404, "notFound", f"Not found: {where}.", word="NOT_FOUND")
        return json_response(200, cluster.document(self._project))

    def _list(self, call: _Call) -> HttpResponse:
        everywhere = call.location == _EVERYWHERE
        shown = [
            cluster.document(self._project)
            for cluster in self.clusters()
            if (cluster.location not in self._missing if everywhere else cluster.location == call.location)
        ]
        answer: dict[str, Any] = {"clusters": shown} if shown else {}
        if everywhere and self._missing:
            answer["missingZones"] = list(self._missing)
        return json_response(200, answer)


def _find_call(request: HttpRequest) -> _Call | None:
    if request.method != "GET":
        return None
    match request.segments:
        case ("v1", "projects", project, "locations", location, "clusters"):
            return _Call(method_id=LIST, project=project, location=location, name="")
        case ("v1", "projects", project, "locations", location, "clusters", name):
            return _Call(method_id=GET, project=project, location=location, name=name)
    return None
