"""A scenario's rules about strangers: machines of somebody else that have the name the plane wants."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

from runtender.local.compute.catalogue import region_of
from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.scenario.calls import document_of
from runtender.local.scenario.rules import StrangerRule

INSERT = "compute.instances.insert"


class Strangers:
    """Makes a stranger's machine just before an insert that a rule matches. `ids` are those made so far."""

    def __init__(self, rules: Sequence[StrangerRule], answer: Callable[[HttpRequest], HttpResponse]) -> None:
        self._rules = tuple(rules)
        self._answer = answer
        self._made: Counter[int] = Counter()
        self.ids: frozenset[str] = frozenset()

    def meet(self, insert: HttpRequest) -> None:
        """Look at an insert before it is answered."""
        project, zone, body = insert.segments[3], zone_of(insert), document_of(insert)
        for index, rule in enumerate(self._rules):
            left = rule.first is None or self._made[index] < rule.first
            here = rule.where.matches(zone=zone, region=region_of(zone), labels=body.get("labels", {}))
            if left and here:
                self._make(project, zone, str(body.get("name", "")), index)

    def _make(self, project: str, zone: str, name: str, index: int) -> None:
        answer = self._answer(stranger_insert(project, zone, name, disk=f"stranger-{len(self.ids)}"))
        if answer.status == 200:
            self._made[index] += 1
            self.ids |= {answer.json()["targetId"]}


def zone_of(insert: HttpRequest) -> str:
    """Return the zone in which an insert wants its machine."""
    return insert.segments[5]


def stranger_insert(project: str, zone: str, name: str, *, disk: str) -> HttpRequest:
    """Return the call by which somebody else makes a machine: nothing on it is the plane's but its name."""
    body = {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/e2-standard-2",
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "diskName": disk,
                    "sourceImage": "projects/debian-cloud/global/images/family/debian-12",
                },
            }
        ],
        "networkInterfaces": [{}],
    }
    path = f"/compute/v1/projects/{project}/zones/{zone}/instances"
    return HttpRequest(method="POST", path=path, body=json.dumps(body).encode())
