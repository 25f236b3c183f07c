"""A scenario's rules about pods: what happens to one, some time after its container runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from runtender.local.http import HttpRequest
from runtender.local.kubernetes.events import Event, PodStarted
from runtender.local.kubernetes.server import KubernetesServer
from runtender.local.pods.runner import PodRunner
from runtender.local.scenario.clock import Timers
from runtender.local.scenario.cluster_rules import PodBlow, PodRule
from runtender.local.scenario.turns import Hits


class PodStrikes:
    """Strikes pods when their time has come. Told of events, it decides nothing by itself."""

    def __init__(
        self, rules: Sequence[PodRule], *, timers: Timers, cluster: KubernetesServer, pods: PodRunner
    ) -> None:
        self._rules = tuple(rules)
        self._timers = timers
        self._cluster = cluster
        self._hits = Hits()
        self._blows: Mapping[PodBlow, Callable[[PodRule, PodStarted], object]] = {
            PodBlow.EVICT: lambda _, pod: cluster.evict(pod.namespace, pod.name),
            PodBlow.PREEMPT: lambda _, pod: cluster.preempt(pod.namespace, pod.name),
            PodBlow.TAKE_NODE: lambda _, pod: cluster.take_node(pod.node),
            PodBlow.LOSE_NODE: lambda _, pod: cluster.lose_node(pod.node),
            PodBlow.END_CONTAINER: lambda rule, pod: pods.end_container(
                pod.uid, rule.exit_code, oom=rule.out_of_memory
            ),
            PodBlow.KILL_WORKER: lambda _, pod: pods.kill_worker(pod.uid),
            PodBlow.DELETE_JOB: lambda _, pod: cluster.apply(_delete_job(pod)),
        }

    def saw(self, event: Event) -> None:
        """Learn what happens to a pod. A container that is started again is no new pod."""
        if not isinstance(event, PodStarted) or event.restart:
            return
        for index, rule in enumerate(self._rules):
            if rule.matches(labels=event.labels, annotations=event.annotations):
                self._timers.after(rule.after, partial(self._strike, index, event))

    def _strike(self, index: int, pod: PodStarted) -> None:
        rule = self._rules[index]
        if self._is_there(pod) and self._hits.take(index, rule.first):
            self._blows[rule.blow](rule, pod)

    def _is_there(self, pod: PodStarted) -> bool:
        """True while the pod runs: one that has ended takes nobody's turn."""
        pods = self._cluster.documents("pods", pod.namespace)
        return any(one["metadata"]["uid"] == pod.uid and one["status"]["phase"] == "Running" for one in pods)


def _delete_job(pod: PodStarted) -> HttpRequest:
    job = pod.labels["batch.kubernetes.io/job-name"]
    path = f"/apis/batch/v1/namespaces/{pod.namespace}/jobs/{job}"
    return HttpRequest(method="DELETE", path=path, query={"propagationPolicy": "Background"})
