"""The machines' side of a simulated world: each guest does what the startup script does, through the same two APIs.

A guest's life is a generator that mirrors `gce_startup.sh` function by function; what it yields is how long it naps. It
knows only what the rendered script tells it, and has a worker's rights.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import unquote

from runtender.local.compute.events import Booted, StopReason
from runtender.local.simulation.lives import Life
from runtender.local.simulation.storage import Network, WorkerStorage, is_stored, pause_s
from runtender.worker.layout import cells_object, summary_object

_WORD = re.compile(r"(?<=\s)([A-Z_]+)=([^\s'()]*)")
_LAST_WORD = "readonly -a COMMAND="
_LAST_LOG_TRIES = 3
_PANEL_FILES = 4


class Death(StrEnum):
    """Where a guest's shell dies without a word while its machine goes on running."""

    BEFORE_START = "before the container starts"
    AT_WORK = "while the container runs"
    BEFORE_STORING = "after printing its marker, before storing it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Behaviour:
    """What is in store for a guest; spans in seconds. Of `cells` results `cells_failed` are errors.

    `summary` false: the worker ends without one. `mute_when_stopped`: the shell is killed before it can tell why.
    """

    boot_s: float = 20
    work_s: float = 240
    exit_code: int = 0
    cells: int = 4
    cells_failed: int = 0
    summary: bool = True
    pulls: bool = True
    boots: bool = True
    dies: Death | None = None
    mute_when_stopped: bool = False


ORDINARY = Behaviour()
"""Four minutes of work, and a good end."""


class Surroundings(Network, Protocol):
    """What a guest can reach."""

    def print_serial(self, instance_id: str, line: bytes) -> None:
        """Print on the machine's console."""

    def power_off(self, instance_id: str, boot: int) -> None:
        """Tell the platform that the machine is down."""

    def epoch(self) -> int:
        """Return the machine's clock."""


class Guest:
    """One boot of one machine. `disk` outlives it: what a second boot finds."""

    def __init__(
        self, booted: Booted, behaviour: Behaviour, disk: dict[str, bytes], around: Surroundings
    ) -> None:
        self.booted = booted
        self.behaviour = behaviour
        self.stopped: StopReason | None = None
        self.life = self._main()
        self._disk = disk
        self._around = around
        self._storage = WorkerStorage(booted.name, around)
        self._words = _read_words(booted.metadata.get("startup-script", ""))
        self._started_at: int | None = None

    @property
    def nonce(self) -> str:
        """The try that made this machine."""
        return self._words["NONCE"]

    def _main(self) -> Life:
        if not self.behaviour.boots:
            return
        if "state" in self._disk:
            yield from self._finish_after_reboot()
            return
        self._disk["state"] = b""
        decided = yield from self._is_decided()
        if decided:
            self._remove_self()
            return
        yield self.behaviour.boot_s
        if self.behaviour.dies is Death.BEFORE_START:
            return
        if self.stopped:
            yield from self._finish("INTERRUPTED", None, self._interruption())
        elif not self.behaviour.pulls:
            yield from self._finish("FAILED", None, "ImagePull")
        else:
            yield from self._run_container()

    def _is_decided(self) -> Generator[float, None, bool]:
        bucket, name = self._words["STATUS_BUCKET"], self._words["TERMINAL_OBJECT"]
        tries = 0
        while True:
            status = self._storage.read(bucket, name, query="fields=name").status
            if status in {200, 403, 404}:
                return status == 200
            yield pause_s(tries)
            tries += 1

    def _run_container(self) -> Life:
        self._started_at = self._around.epoch()
        self._disk["exec_start"] = str(self._started_at).encode()
        # The script goes on trying beside the container; here a failed try is repeated while the container works.
        started = self._store_started()
        for seq in range(_PANEL_FILES):
            yield self.behaviour.work_s / _PANEL_FILES
            started = started or self._store_started()
            if self.stopped or self.behaviour.dies is Death.AT_WORK:
                break
            self._storage.upload(self._words["SF_CELLS_URI"], cells_object(0, seq), b"cells")
        if self.behaviour.dies is Death.AT_WORK:
            return
        yield from self._judge()

    def _judge(self) -> Life:
        if self.stopped:
            yield from self._finish("INTERRUPTED", 143, self._interruption())
        elif self.behaviour.exit_code:
            yield from self._finish("FAILED", self.behaviour.exit_code, "ExitCode")
        else:
            if self.behaviour.summary:
                self._storage.upload(self._words["SF_CELLS_URI"], summary_object(0), self._summary())
            yield from self._finish("SUCCEEDED", 0, "Completed")

    def _interruption(self) -> str | None:
        return "Preempted" if self.stopped is StopReason.PREEMPTED else None

    def _finish(self, status: str, exit_code: int | None, reason: str | None) -> Life:
        if self.stopped and self.behaviour.mute_when_stopped:
            return
        self._disk["terminal"] = json.dumps(self._marker(status, exit_code, reason)).encode()
        self._announce()
        yield from self._store_last_log()
        if self.behaviour.dies is Death.BEFORE_STORING:
            return
        yield from self._store_terminal()
        self._remove_self()

    def _finish_after_reboot(self) -> Life:
        if "terminal" not in self._disk:
            yield from self._finish("FAILED", None, "Rebooted")
            return
        self._announce()
        yield from self._store_terminal()
        self._remove_self()

    def _announce(self) -> None:
        words = base64.b64encode(self._disk["terminal"]).decode()
        self._around.print_serial(self.booted.instance_id, f"SF-MARKER {self.nonce} {words}\n".encode())

    def _store_last_log(self) -> Life:
        for tries in range(_LAST_LOG_TRIES):
            answer = self._storage.create(
                self._words["LOG_BUCKET"], f"{self._words['LOG_OBJECT']}1.log", b"log"
            )
            if answer.status not in {0, 408, 429} and answer.status < 500:
                return
            yield pause_s(tries)

    def _store_terminal(self) -> Life:
        """Try for as long as the machine lives."""
        tries = 0
        while True:
            answer = self._storage.create(
                self._words["STATUS_BUCKET"], self._words["TERMINAL_OBJECT"], self._disk["terminal"]
            )
            if is_stored(answer):
                return
            yield pause_s(tries)
            tries += 1

    def _store_started(self) -> bool:
        body = json.dumps(self._marker("RUNNING", None, None)).encode()
        return is_stored(
            self._storage.create(self._words["STATUS_BUCKET"], self._words["STARTED_OBJECT"], body)
        )

    def _remove_self(self) -> None:
        if self._words["SELF_DELETE"] == "true":
            place = self.booted
            path = f"/compute/v1/projects/{place.project}/zones/{place.zone}/instances/{place.name}"
            self._around.request(place.name, "DELETE", path)
        self._around.power_off(self.booted.instance_id, self.booted.boot)

    def _marker(self, status: str, exit_code: int | None, reason: str | None) -> Mapping[str, Any]:
        now, since = self._around.epoch(), self._started_at
        return {
            "status": status,
            "exit_code": exit_code,
            "instance": self.booted.name,
            "zone": self.booted.zone,
            "detail": "",
            "boot_epoch": now,
            "exec_start_epoch": since,
            "end_epoch": now,
            "execute_s": None if since is None else now - since,
            "writer": "guest",
            "preempted": self.stopped is StopReason.PREEMPTED,
            "signal": None,
            "reason": reason,
            "log_uri": None,
        }

    def _summary(self) -> bytes:
        total, failed = self.behaviour.cells, self.behaviour.cells_failed
        counts = {"n_cells": total, "n_ok": total - failed, "n_error": failed}
        return json.dumps({"nonce": self.nonce, "complete": True, **counts}).encode()


def _read_words(script: str) -> dict[str, str]:
    """Read what the script was rendered with; `quote` made single words of all that a guest needs."""
    head = script[: script.find(_LAST_WORD)]
    return {name: unquote(value) for name, value in _WORD.findall(head)}
