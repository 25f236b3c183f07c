"""How long things take in the simulated Kubernetes, in one place, so that all of it can be scaled alike."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Timings:
    """Spans of a pod's and a node's life. The defaults are what one sees on a GKE cluster on an ordinary day.

    Waits of a Job: `retry` after a failed pod, doubled by each further failure up to `longest_retry`; `create_retry` after
    a pod could not be made. `collect` is how long the garbage collector takes to find what has lost its owner.
    A lost node is seen after `node_silence`, its pods are told to go `node_eviction` later, the node itself is forgotten
    `node_removal` after it was lost, and pods of a node that is gone are ended `orphan_pod` later.
    `grace_unit` is what one second of a pod's grace period takes. `list_memory` is how long a list can be continued.
    """

    schedule: timedelta = timedelta(seconds=1)
    pull: timedelta = timedelta(seconds=6)
    scale_up: timedelta = timedelta(seconds=75)
    stop: timedelta = timedelta(seconds=1)
    pull_retry: timedelta = timedelta(seconds=10)
    restart: timedelta = timedelta(seconds=10)
    longest_restart: timedelta = timedelta(minutes=5)
    mount_retry: timedelta = timedelta(seconds=15)
    retry: timedelta = timedelta(seconds=10)
    longest_retry: timedelta = timedelta(minutes=10)
    create_retry: timedelta = timedelta(seconds=10)
    collect: timedelta = timedelta(seconds=1)
    node_silence: timedelta = timedelta(seconds=40)
    node_eviction: timedelta = timedelta(minutes=5)
    node_removal: timedelta = timedelta(minutes=10)
    orphan_pod: timedelta = timedelta(seconds=40)
    kill_margin: timedelta = timedelta(seconds=5)
    grace_unit: timedelta = timedelta(seconds=1)
    list_memory: timedelta = timedelta(minutes=5)
    event_memory: timedelta = timedelta(hours=1)

    def scaled(self, scale: float) -> Timings:
        """Return every span divided by `scale`."""
        return Timings(**{field.name: getattr(self, field.name) / scale for field in fields(self)})
