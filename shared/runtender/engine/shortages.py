"""What one job learns about places without room, for the jobs after it.

A refused placement leaves a note that holds for a while; whoever looks for a machine of the same kind then tries that place
last. A note is a hint and no more: it excludes nothing, and a lost one costs a refusal.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from datetime import timedelta

from runtender.engine.plane import Plane
from runtender.errors import Retryable
from runtender.model import Block, Job, JobPlan, LedgerEntry, Scope, Verdict
from runtender.ports import Increment
from runtender.wire.documents import SCHEMA

_LOG = logging.getLogger("runtender.shortages")

_OUT = {Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING}
# The plane gave these up without the platform's having said that there is no room.
_NOT_SAID = {"UNANSWERED", "GIVEN_UP"}
_EXPIRY = timedelta(days=7)
# All zones of all regions there are.
_MOST_NOTES = 300


class Shortages:
    """Reads and writes the notes, `blocks/{id}`."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def known(self, plan: JobPlan) -> tuple[Block, ...]:
        """Return the places that lately had no room for such machines. Raises `Retryable`."""
        machines = {one.machine_label: _machine(plan.at(one)) for one in plan.placements}
        return tuple(block for label, machine in machines.items() for block in self._notes(label, machine))

    def _notes(self, label: str, machine: str) -> Iterator[Block]:
        now = self._plane.clock.now()
        for found in self._plane.store.find("blocks", where={"machine": machine}, limit=_MOST_NOTES):
            note = found.data
            if note["until"] > now:
                scope = Scope(note["scope"])
                yield Block(scope=scope, name=note["name"], until=note["until"], machine=label)

    def tell(self, before: Job, after: Job) -> None:
        """Note what `after` was refused that `before` was not."""
        for entry in after.walk.ledger:
            if entry in before.walk.ledger:
                continue
            if not entry.recognised:
                facts = {"job_key": after.job_key, "code": entry.code, "text": entry.message[:200]}
                _LOG.warning("unknown code", extra=facts)
            if entry.verdict in _OUT and entry.scope is not Scope.PROJECT and entry.code not in _NOT_SAID:
                self._note(after.plan, entry)

    def _note(self, plan: JobPlan, entry: LedgerEntry) -> None:
        placement = next((one for one in plan.placements if one.label == entry.candidate), None)
        if placement is None:
            return
        machine = _machine(plan.at(placement))
        name = placement.location if entry.scope is Scope.ZONE else placement.region
        until = entry.at + self._plane.settings.timing.placement_block
        fields = {
            "schema": SCHEMA,
            "machine": machine,
            "scope": entry.scope.value,
            "name": name,
            "until": until,
            "code": entry.code,
            "expires_at": until + _EXPIRY,
        }
        digest = hashlib.sha256(f"{machine}/{entry.scope}/{name}".encode()).hexdigest()[:20]
        try:
            self._plane.store.commit(
                [Increment(path=f"blocks/{digest}", amounts={"times": 1}, fields=fields)]
            )
        except Retryable as error:
            _LOG.info("note not taken", extra={"place": name, "error": str(error)})


def _machine(plan: JobPlan) -> str:
    """Name the kind of machine: what one kind is short of, another may have."""
    gpus = f" {plan.accelerator_count} x {plan.accelerator_type}" if plan.accelerator_count else ""
    return f"{plan.machine_type}{gpus}{' spot' if plan.spot else ''}"
