"""What a scenario can say of the standing cluster: its nodes, and what happens to its pods and Jobs.

Times count from the start of the cloud, as in `rules`; how each rule is written is told in `scenarios/README.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"

_AT_ONCE = timedelta()


class PodBlow(StrEnum):
    """What can happen to a pod that runs.

    EVICT: its node is short of memory. PREEMPT: another pod needs the room. TAKE_NODE: its Spot node goes, with a warning.
    LOSE_NODE: its node vanishes without a word. END_CONTAINER: the container ends, as if by itself. KILL_WORKER: the program
    that the container's bootstrap runs is killed. DELETE_JOB: somebody deletes its Job.
    """

    EVICT = "evict"
    PREEMPT = "preempt"
    TAKE_NODE = "take_node"
    LOSE_NODE = "lose_node"
    END_CONTAINER = "end_container"
    KILL_WORKER = "kill_worker"
    DELETE_JOB = "delete_job"


@dataclass(frozen=True, kw_only=True, slots=True)
class PodRule:
    """A blow to pods, some time after their container runs; each is hit once, and at most `first` of them.

    `index` is that of a Job's worker; None: any. `exit_code` and `out_of_memory` say how a container ends that END_CONTAINER
    hits.
    """

    blow: PodBlow
    index: int | None = None
    attempt: int | None = None
    after: timedelta = _AT_ONCE
    first: int | None = None
    exit_code: int = 137
    out_of_memory: bool = False

    def matches(self, *, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
        """True for a pod whose marks say that index and attempt."""
        pairs = ((self.index, annotations.get(INDEX_ANNOTATION)), (self.attempt, labels.get("sf-attempt")))
        return all(rule is None or str(rule) == fact for rule, fact in pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterRule:
    """The standing cluster: how many nodes it has at first, how many more come at a time, and images that nobody has."""

    nodes: int = 4
    more: int = 0
    at: timedelta = _AT_ONCE
    missing_images: tuple[str, ...] = ()
