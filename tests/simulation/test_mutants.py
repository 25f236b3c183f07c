"""The rules can fail: with any one of the plane's safety mechanisms taken out, some world breaks one of them.

Each mutant is the real plane but for one mechanism. The rule that finds it is named, so that a test which goes red for
another reason does not pass for a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

import runtender.decide.machine
import runtender.decide.teardown
import runtender.engine.fleet
import runtender.engine.tick
import runtender.local.simulation.cloud
from runtender.decide import Decision
from runtender.gcp.storage import StorageObjects
from runtender.local.simulation.plots import ORPHAN, PLOTS
from runtender.local.simulation.worlds import Kind
from runtender.local.store import MemoryStore
from runtender.model import ResourceState
from runtender.ports import Update


class Unversioned(MemoryStore):
    """Takes every update, whatever version it was made from."""

    def commit(self, writes):
        return super().commit([self._current(write) for write in writes])

    def _current(self, write):
        standing = self.get(write.path) if isinstance(write, Update) else None
        return write if standing is None else replace(write, stamp=standing.stamp)


class Forgetful(MemoryStore):
    """Says that it saved a row before its create, and did not."""

    def commit(self, writes):
        return super().commit([self._without_intents(write) for write in writes])

    def _without_intents(self, write):
        if not isinstance(write, Update) or "resources" not in write.fields:
            return write
        rows = [row for row in write.fields["resources"] if row["state"] != ResourceState.INTENDED]
        return replace(write, fields={**write.fields, "resources": rows})


def without_version_check(patch):
    patch.setattr(runtender.local.simulation.cloud, "MemoryStore", Unversioned)


def without_saved_row(patch):
    patch.setattr(runtender.local.simulation.cloud, "MemoryStore", Forgetful)


def without_create_grace(patch):
    def lands(row, _sight, _ctx):
        return row.operation is not None and not row.refused

    patch.setattr(runtender.decide.teardown, "_may_still_land", lands)


def without_tombstone(patch):
    create = StorageObjects.create

    def pretend(self, bucket, name, body, **options):
        return name.endswith(".terminal.json") or create(self, bucket, name, body, **options)

    patch.setattr(StorageObjects, "create", pretend)


def without_previous_placement_check(patch):
    tear_down = runtender.decide.teardown.tear_down

    def hurry(job, row, seen, ctx):
        if job.outcome is not None:
            return tear_down(job, row, seen, ctx)
        return Decision(job=job.with_row(replace(row, state=ResourceState.GONE, token=None, until=None)))

    patch.setattr(runtender.decide.machine, "tear_down", hurry)


def without_page_check(patch):
    read_fleet = runtender.engine.fleet.read_fleet
    patch.setattr(
        runtender.engine.fleet, "read_fleet", lambda *args: replace(read_fleet(*args), complete=True)
    )


@dataclass(frozen=True)
class Mutant:
    take_out: Callable
    rules: tuple[str, ...]


MUTANTS = [
    Mutant(without_version_check, ("history", "I4", "I5", "I10")),
    Mutant(without_saved_row, ("I1",)),
    Mutant(without_create_grace, ("I8",)),
    Mutant(without_tombstone, ("tombstone", "I3")),
    Mutant(without_previous_placement_check, ("I3", "I8")),
    Mutant(without_page_check, ("I9",)),
]


def test_an_orphan_is_left_alone_while_a_zone_does_not_answer_and_swept_after():
    assert ORPHAN.play({}).is_at_rest()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.take_out.__name__)
def test_a_plane_breaks_a_rule(monkeypatch, first_broken_rule, mutant):
    mutant.take_out(monkeypatch)
    broken = first_broken_rule(PLOTS, [ORPHAN], Kind.MACHINES)
    assert any(f": {rule}: " in broken for rule in mutant.rules), broken
