"""How a scenario's run was expected to end, held against how it did."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from runtender.local.cloud import LocalCloud
from runtender.local.demo_results import Record
from runtender.local.scenario.rules import zones_text
from runtender.model import Job, Outcome, Run

ExitCode = Callable[[Outcome], int]
"""Returns the exit code of a command that waited for a run with this outcome."""

_MOST_RUNS = 1000
_MOST_LOGS = 1000
_LOG_LIMIT = 6 * 1024 * 1024
_LOG_NUMBER = re.compile(r"/0\.(\d+)\.log$")
_SHOWN = 200
# Texts of which the expectation says a part, and numbers of which it says the most.
_TEXTS = frozenset({"detail", "log"})
_AT_MOST = frozenset({"within"})


def facts_of(cloud: LocalCloud, record: Record, exit_code: ExitCode) -> dict[str, Any]:
    """Return how the demo's last run ended, by the names that a scenario's `expect` has."""
    outcome, first = record.run.outcome, record.jobs[0]
    return {
        "outcome": None if outcome is None else outcome.value,
        "exit_code": None if outcome is None else int(exit_code(outcome)),
        "reason": None if first.reason is None else first.reason.value,
        "detail": first.detail,
        "log": _last_log(cloud, first),
        "runs": len(cloud.store.find("runs", limit=_MOST_RUNS)),
        "within": _seconds(cloud, record.run),
        "inserts": cloud.inserts(),
        "jobs": cloud.cluster.jobs_begun(),
        "insert_calls": zones_text(cloud.insert_calls()),
        "refused_deletes": sum(job.cleanup.tries for job in record.jobs),
        "functions_started": cloud.functions.starts,
        "strangers": cloud.strangers(),
    }


def findings(
    expect: Mapping[str, str | int],
    facts: Mapping[str, Any],
    leftovers: Mapping[str, int],
    cells: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return one finding per expectation, and one that nothing is left; none for a scenario that expects nothing.

    And one on `cells`, how those of the last run compare with the first's, where they were compared.
    """
    if not expect:
        return []
    found = [_finding(name, wanted, facts[name]) for name, wanted in expect.items()]
    if cells is not None:
        found.append(_cells_finding(cells))
    left = ", ".join(f"{count} {kind}" for kind, count in leftovers.items() if count) or "none"
    return [*found, {"what": "leftovers", "expected": "none", "found": left, "met": left == "none"}]


def _finding(name: str, wanted: str | int, found: Any) -> dict[str, Any]:
    if name in _AT_MOST:
        met = found is not None and found <= wanted
        shown = "never" if found is None else f"{found} s"
        return {"what": name, "expected": f"at most {wanted} s", "found": shown, "met": met}
    if name in _TEXTS:
        met = str(wanted) in found
        part = str(wanted) if met else f"... {found[-_SHOWN:]}" if found else ""
        return {"what": name, "expected": f"... {wanted} ...", "found": part, "met": met}
    return {"what": name, "expected": wanted, "found": found, "met": wanted == found}


def _cells_finding(cells: Mapping[str, Any]) -> dict[str, Any]:
    told = ", ".join(f"{cells[name]} {name}" for name in ("missing", "added", "different") if cells[name])
    examples = f" ({', '.join(cells['examples'])})" if cells["examples"] else ""
    found = f"{told}{examples}" if told else f"all {cells['cells']} equal" if cells["equal"] else "none"
    return {"what": "cells", "expected": f"those of {cells['run_id']}", "found": found, "met": cells["equal"]}


def _seconds(cloud: LocalCloud, run: Run) -> int | None:
    """Return how long it took to the run's outcome, on the cloud's clock."""
    if run.finished_at is None:
        return None
    return math.ceil((run.finished_at - run.created_at).total_seconds() * cloud.settings.time_scale)


def _last_log(cloud: LocalCloud, job: Job) -> str:
    """Return what a job's newest machine printed, from the last log object that it stored."""
    if not job.resources:
        return ""
    bucket, prefix = cloud.settings.code_bucket, f"runs/logs/{job.job_key}/{job.resources[-1].nonce}/"
    stored = cloud.objects.list(bucket, prefix, limit=_MOST_LOGS).objects
    numbers = {int(match[1]): each.name for each in stored if (match := _LOG_NUMBER.search(each.name))}
    if not numbers:
        return ""
    return (cloud.objects.read(bucket, numbers[max(numbers)], limit=_LOG_LIMIT) or b"").decode(
        "utf-8", "replace"
    )
