"""Runs the pods of a simulated cluster: a container that is to start gets a life, one that is to end hears of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from runtender.local.compute.agenda import Agenda
from runtender.local.kubernetes.events import Event, KillReason, PodKill, PodRemoved, PodStarted
from runtender.local.simulation.lives import Lives
from runtender.local.simulation.pods import KILLED, Pod, PodBehaviour, PodSurroundings


class Crew:
    """All pods whose container was started. `behaviour` tells of each new one what is in store for it."""

    def __init__(
        self, agenda: Agenda, around: PodSurroundings, behaviour: Callable[[PodStarted], PodBehaviour]
    ) -> None:
        self._agenda = agenda
        self._lives = Lives(agenda)
        self._around = around
        self._behaviour = behaviour
        self._pods: dict[str, Pod] = {}

    def tell(self, event: Event, now: datetime) -> None:
        """Do what the cluster asks."""
        match event:
            case PodStarted():
                pod = Pod(event, self._behaviour(event), self._around)
                self._pods[event.uid] = pod
                self._lives.begin(event.uid, pod.life, now)
            case PodKill(uid=uid):
                if uid in self._lives:
                    self._stop(self._pods[uid], event, now)
            case PodRemoved(uid=uid):
                self._end(uid)
                self._pods.pop(uid, None)
            case _:
                assert_never(event)

    def at_work(self) -> tuple[Pod, ...]:
        """Return the pods whose worker is at it: past their first look, and not at their end."""
        return tuple(pod for pod in self._pods.values() if pod.works)

    def end_all(self) -> None:
        """Let all containers be gone."""
        for uid in self._pods:
            self._end(uid)

    def _stop(self, pod: Pod, kill: PodKill, now: datetime) -> None:
        if kill.reason is KillReason.NODE_LOST:
            if not pod.behaviour.outlives_node:
                self._end(pod.order.uid)
            return
        pod.told_to_end = True
        self._agenda.at(now + kill.grace, lambda _at: self._kill(pod))
        if pod.behaviour.obeys and kill.grace:
            self._lives.wake(pod.order.uid, now)

    def _kill(self, pod: Pod) -> None:
        if pod.order.uid in self._lives:
            self._end(pod.order.uid)
            self._around.pod_exited(pod, KILLED, oom=False)

    def _end(self, uid: str) -> None:
        self._lives.end(uid)
        if pod := self._pods.get(uid):
            pod.works = False
