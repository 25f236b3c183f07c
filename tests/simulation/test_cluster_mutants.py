"""The rules can fail for jobs on a cluster, too: with any one safety mechanism taken out, some story breaks one of them.

Each mutant is the real plane but for one mechanism; the rule that finds it is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from runtender.decide import decision, endings, indexed, looks, machine, teardown
from runtender.engine import fleet
from runtender.gcp.storage import StorageObjects
from runtender.local.simulation.cluster_plots import CLUSTER_PLOTS, LATE_COPY, LATE_JOB, MOMENT, ORPHAN_JOB
from runtender.local.simulation.worlds import Kind
from runtender.observed import Absent, LiveState
from runtender.runtimes.gke_job import GkeJob


def without_identity_check(patch):
    """A Job of the row's name is taken for the row's."""
    for module in (decision, endings, indexed, looks, machine):
        patch.setattr(module, "sight_of", lambda row, seen: seen.sights.get(row.nonce))
    patch.setattr(decision.Context, "made", lambda _ctx, _sight, _job, _row: True)


def without_pods_remain_check(patch):
    """A Job that is gone is taken for gone with its pods."""
    patch.setattr(GkeJob, "remains", lambda _runtime, _job, _row, _settings: ())


def without_second_look(patch):
    """A Job that is not there once is taken for deleted."""

    def is_missing(_row, sight, _ctx):
        return isinstance(sight, Absent) or sight.state is LiveState.ENDED

    for module in (endings, looks):
        patch.setattr(module, "is_missing", is_missing)


def without_completeness_check(patch):
    """The summaries of some workers are taken for those of all."""

    def has_delivered(row, seen):
        return seen.summaries.get(row.nonce) is not None

    patch.setattr(endings, "_has_delivered", has_delivered)


def without_uid_of_delete(patch):
    """A Job is deleted by its name, whosever it is by now."""
    delete = GkeJob.delete

    def by_name(runtime, job, row, settings):
        request = delete(runtime, job, row, settings)
        body = {name: value for name, value in (request.body or {}).items() if name != "preconditions"}
        return replace(request, body=body)

    patch.setattr(GkeJob, "delete", by_name)


def without_word_for_late_copies(patch):
    """A second copy of a create is forgotten once its Job is gone."""
    patch.setattr(teardown, "_may_land_unseen", lambda _row: False)


def without_tombstone(patch):
    """The plane ends jobs without telling their workers."""
    create = StorageObjects.create

    def pretend(self, bucket, name, body, **options):
        return name.endswith("/job.terminal.json") or create(self, bucket, name, body, **options)

    patch.setattr(StorageObjects, "create", pretend)


def without_page_check(patch):
    """A list of Jobs of which some pages are missing is taken for whole."""
    read_fleet = fleet.read_fleet
    patch.setattr(fleet, "read_fleet", lambda *args: replace(read_fleet(*args), complete=True))


@dataclass(frozen=True)
class Mutant:
    take_out: Callable
    rules: tuple[str, ...]


MUTANTS = [
    Mutant(without_identity_check, ("truth", "tombstone")),
    Mutant(without_pods_remain_check, ("I8",)),
    Mutant(without_second_look, ("truth",)),
    Mutant(without_completeness_check, ("truth",)),
    Mutant(without_uid_of_delete, ("I6",)),
    Mutant(without_word_for_late_copies, ("tombstone",)),
    Mutant(without_tombstone, ("tombstone", "I3")),
    Mutant(without_page_check, ("I9",)),
]


def test_an_orphan_is_left_alone_while_lists_break_off_and_swept_after():
    assert ORPHAN_JOB.play({}).is_at_rest()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.take_out.__name__)
def test_a_plane_breaks_a_rule(monkeypatch, first_broken_rule, mutant):
    mutant.take_out(monkeypatch)
    broken = first_broken_rule(CLUSTER_PLOTS, [MOMENT, LATE_JOB, LATE_COPY, ORPHAN_JOB], Kind.CLUSTERS)
    assert any(f": {rule}: " in broken for rule in mutant.rules), broken
