"""How a pod begins to end because somebody deleted it: the API, a controller, or what clears up after a node."""

from __future__ import annotations

from runtender.local.kubernetes.cluster import Cluster
from runtender.local.kubernetes.documents import Document, Key, is_ending, stamp
from runtender.local.kubernetes.pods import grace_s, is_over, node_of


def begin_deletion(cluster: Cluster, key: Key, grace: int | None = None) -> None:
    """Begin to delete a pod with a grace in seconds; None is the pod's own.

    A pod that is over, or was given no node, has nothing to end and goes at once. A shorter grace than that of a deletion
    under way counts instead.
    """
    now = cluster.now

    def begin(pod: Document) -> None:
        span = grace_s(pod) if grace is None else grace
        if is_over(pod) or not node_of(pod):
            span = 0
        metadata = pod["metadata"]
        if is_ending(pod) and metadata.get("deletionGracePeriodSeconds", 0) <= span:
            return
        due = now + span * cluster.timings.grace_unit
        metadata.update(deletionTimestamp=stamp(due), deletionGracePeriodSeconds=span)

    cluster.store.edit(key, begin)
