"""What one job learns about places without room, for the jobs after it.

A refused placement leaves a note that holds for a while; whoever looks for a machine of the same kind then tries that place
last. A note is a hint and no more: it excludes nothing, and a lost one costs a refusal.
"""

from __future__ import annotations

import hashlib
import logging
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
        """Return the places that lately had no room for such a machine. Raises `Retryable`."""
        found = self._plane.store.find("blocks", where={"machine": _machine(plan)}, limit=_MOST_NOTES)
        notes = (note.data for note in found)
        now = self._plane.clock.now()
        return tuple(
            Block(scope=Scope(note["scope"]), name=note["name"], until=note["until"])
            for note in notes
            if note["until"] > now
        )

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
        region, _, zone = entry.candidate.partition("/")
        name = zone if entry.scope is Scope.ZONE else region
        until = entry.at + self._plane.settings.timing.placement_block
        fields = {
            "schema": SCHEMA,
            "machine": _machine(plan),
            "scope": entry.scope.value,
            "name": name,
            "until": until,
            "code": entry.code,
            "expires_at": until + _EXPIRY,
        }
        digest = hashlib.sha256(f"{_machine(plan)}/{entry.scope}/{name}".encode()).hexdigest()[:20]
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
