"""A scenario's rules about strangers: machines and Jobs of somebody else that have the name the plane wants."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from runtender.local.compute.catalogue import region_of
from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.scenario.calls import document_of
from runtender.local.scenario.rules import StrangerKind, StrangerRule

INSERT = "compute.instances.insert"
CREATE_JOB = "kubernetes.jobs.create"

Answered = Callable[[HttpRequest], HttpResponse]


class Strangers:
    """Makes a stranger's thing just before a call that a rule matches. `ids` are those made so far, by id or UID.

    `compute` and `cluster` answer requests in the midst of the call.
    """

    def __init__(self, rules: Sequence[StrangerRule], compute: Answered, cluster: Answered) -> None:
        self._rules = tuple(rules)
        self._compute = compute
        self._cluster = cluster
        self._made: Counter[int] = Counter()
        self.ids: frozenset[str] = frozenset()

    def meet(self, insert: HttpRequest) -> None:
        """Look at a machine's insert before it is answered."""
        project, zone, body = insert.segments[3], zone_of(insert), document_of(insert)
        for index in self._due(StrangerKind.MACHINE, body.get("labels", {}), zone):
            name, disk = str(body.get("name", "")), f"stranger-{len(self.ids)}"
            answer = self._compute(stranger_insert(project, zone, name, disk=disk))
            if answer.status == 200:
                self._note(index, answer.json()["targetId"])

    def meet_job(self, create: HttpRequest) -> None:
        """Look at a Job's create before it is answered."""
        metadata = document_of(create).get("metadata", {})
        for index in self._due(StrangerKind.JOB, metadata.get("labels", {})):
            answer = self._cluster(stranger_job(create.path, str(metadata.get("name", ""))))
            if answer.status == 201:
                self._note(index, answer.json()["metadata"]["uid"])

    def _due(self, kind: StrangerKind, labels: Mapping[str, str], zone: str = "") -> list[int]:
        """Return the rules that match and are not used up, by their place."""
        return [
            index
            for index, rule in enumerate(self._rules)
            if rule.kind is kind
            and (rule.first is None or self._made[index] < rule.first)
            and rule.where.matches(zone=zone, region=region_of(zone), labels=labels)
        ]

    def _note(self, index: int, made: str) -> None:
        self._made[index] += 1
        self.ids |= {made}


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


def stranger_job(path: str, name: str) -> HttpRequest:
    """Return the call by which somebody else makes a Job that has nothing to do: it has ended as soon as it is there."""
    container = {"name": "nothing", "image": "busybox:1"}
    body = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": 0,
            "parallelism": 0,
            "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
        },
    }
    headers = {"Content-Type": "application/json"}
    return HttpRequest(method="POST", path=path, headers=headers, body=json.dumps(body).encode())
