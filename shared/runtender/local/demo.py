"""`runtender local demo`: one real forecast from submit message to cleaned-up machine, in a local cloud of its own.

Nothing in it is staged for the show. The worker's code is packed and stored, the message goes through the topic, the
machine runs the startup script and fits the models; what is reported is read from the run's documents, the simulated
services' own counts and the operating system.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from runtender.local.backend import BackendName, check_backend
from runtender.local.cloud import LocalCloud
from runtender.local.demo_cells import compare, read_cells
from runtender.local.demo_expectations import ExitCode, facts_of, findings
from runtender.local.demo_results import Record, job_results, merged_forecast
from runtender.local.demo_submission import cancel_in, submit
from runtender.local.environment import checked_scale
from runtender.local.errors import LocalCloudError
from runtender.local.home import remove_folder
from runtender.local.scenario import Scenario
from runtender.local.scenario.rules import Workload
from runtender.local.scenarios import find_scenario
from runtender.local.sources import worker_package
from runtender.local.watch import ProcessWatch, processes_of
from runtender.model import Outcome, Phase, Timing
from runtender.ports import Clock, Objects, Store
from runtender.wire.documents import job_from_document, run_from_document, run_path

DEFAULT_SCENARIO = "first-placement-out-of-stock"
DEFAULT_TIME_SCALE = 20.0
"""Fast enough that waiting is a small part of it, slow enough that a starting process is not taken for a lost one."""

# Many times what the forecast takes on two cores.
_RUN_WAIT = timedelta(minutes=20)
_CLEANUP_WAIT_S = 120.0
_PROCESS_END_S = 5.0
_POLL_S = 0.1


Say = Callable[[str], None]
"""Tells a person what happens, in one line."""

Stage = Callable[[Path, Objects, str], tuple[str, str | None]]
"""Packs the package in a folder into a bucket; returns its URI and entry point."""


class Follow(Protocol):
    """Stays with a run until its outcome is known."""

    def __call__(
        self, store: Store, clock: Clock, timing: Timing, run_id: str, timeout: timedelta | None = None, /
    ) -> Outcome:
        """Show its progress and return its outcome."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How to run the demo; raises `Rejected` for a scenario that is not one.

    And `LocalCloudError` for a `backend` that this machine lacks.
    `scenario` is a shipped one's name or a YAML file. `keep` leaves the cloud's folder there, to be looked at.
    """

    time_scale: float | None = None
    scenario: str | None = None
    backend: BackendName = BackendName.EMBEDDED
    keep: bool = False

    def __post_init__(self) -> None:
        find_scenario(self.scenario)
        checked_scale(self.time_scale or DEFAULT_TIME_SCALE)
        check_backend(self.backend, os.environ)


def run_demo(
    options: Options, *, say: Say, follow: Follow, stage: Stage, exit_code: ExitCode
) -> Mapping[str, Any]:
    """Run the demo and return its report: plain values, ready for JSON.

    `leftovers` counts what was still there when the run's cleanup was over, and every process that outlived the cloud.
    `expectations` says of each thing that the scenario expects whether it came so. `exit_code` maps outcomes.
    Raises `LocalCloudError` where the cloud does not start or the plane does not answer.
    """
    scenario = find_scenario(options.scenario or DEFAULT_SCENARIO)
    folder = Path(tempfile.mkdtemp(prefix="runtender-demo-"))
    stopwatch = _Stopwatch()
    try:
        with ExitStack() as parts:
            processes = parts.enter_context(ProcessWatch())
            with _open_cloud(folder, scenario, options, say) as cloud:
                stopwatch.lap("start_s")
                records = _run_all(cloud, stopwatch, say, follow, stage)
                report, facts = _report(cloud, records), facts_of(cloud, records[-1], exit_code)
            stopwatch.lap("stop_s")
            survivors = _survivors(processes, folder)
    finally:
        if options.keep:
            say(f"kept {folder}")
        else:
            remove_folder(folder)
    report["leftovers"]["processes"] = len(survivors)
    report["expectations"] = findings(
        scenario.expect, facts, report["leftovers"], report["runs"][-1].get("cells")
    )
    report["phases"] = stopwatch.laps
    report["memory"] = {"peak_mib": processes.peak_bytes >> 20}
    return report


def _open_cloud(folder: Path, scenario: Scenario, options: Options, say: Say) -> LocalCloud:
    scale = options.time_scale or DEFAULT_TIME_SCALE
    say(
        f"starting a local cloud, {scale:g} times faster than Google Cloud; "
        f"scenario {scenario.name}, {options.backend} backend"
    )
    return LocalCloud(
        folder / "cloud",
        logs=folder / "logs",
        scenario=scenario,
        time_scale=scale,
        backend=options.backend,
    )


def _run_all(
    cloud: LocalCloud, stopwatch: _Stopwatch, say: Say, follow: Follow, stage: Stage
) -> Sequence[Record]:
    """Play the scenario's runs one after the other; return what each left on record."""
    plan = cloud.scenario.demo
    code = {} if plan.workload is Workload.TASK else _code(cloud, say, stage)
    play = partial(_run, cloud, code, stopwatch=stopwatch, say=say, follow=follow)
    records = [play(0, plan.workers)]
    for number, pause in enumerate(plan.again, start=1):
        time.sleep(pause.total_seconds() / cloud.settings.time_scale)
        stopwatch.lap("pause_s")
        records.append(play(number, plan.workers))
    if plan.compare_with_workers is not None:
        records.append(play(0, plan.compare_with_workers))
    return records


def _run(
    cloud: LocalCloud,
    code: Mapping[str, str | None],
    number: int,
    workers: int | None,
    *,
    stopwatch: _Stopwatch,
    say: Say,
    follow: Follow,
) -> Record:
    """Submit the scenario's workload, stay with the run to its end and its cleanup, and return what it left on record."""
    plan = cloud.scenario.demo
    run_id = submit(cloud, code, number, workers)
    say(f"submitted run {run_id} through topic {cloud.settings.submit_topic}")
    if plan.cancel_in is not None:
        cancel_in(cloud, run_id, plan.cancel_in)
    stopwatch.lap("submit_s")
    outcome = follow(cloud.store, cloud.clock, cloud.settings.timing, run_id, _RUN_WAIT)
    stopwatch.lap("run_s")
    say(f"run {run_id} ended {outcome}; waiting until nothing of it is left")
    record = _await_rest(cloud, run_id)
    stopwatch.lap("cleanup_s")
    return record


def _code(cloud: LocalCloud, say: Say, stage: Stage) -> Mapping[str, str | None]:
    package_uri, entrypoint = stage(worker_package(), cloud.objects, cloud.settings.code_bucket)
    say(f"staged the forecasting worker as {package_uri}")
    return {"package_uri": package_uri, "entrypoint": entrypoint}


def _await_rest(cloud: LocalCloud, run_id: str) -> Record:
    """Wait until every job of the run is at rest, or should have been; what is left over then shows in the report."""
    deadline = time.monotonic() + _CLEANUP_WAIT_S
    while True:
        record = _read_record(cloud.store, run_id)
        if all(job.phase is Phase.DONE for job in record.jobs) or time.monotonic() >= deadline:
            return record
        time.sleep(_POLL_S)


def _read_record(store: Store, run_id: str) -> Record:
    header = store.get(run_path(run_id))
    if header is None:
        raise LocalCloudError(f"run {run_id!r} has no document")
    jobs = (job_from_document(found.data) for found in store.find("jobs", where={"run_id": run_id}))
    return Record(run=run_from_document(header.data), jobs=tuple(sorted(jobs, key=lambda job: job.job_key)))


def _report(cloud: LocalCloud, records: Sequence[Record]) -> dict[str, Any]:
    return {
        "backend": cloud.settings.backend,
        "scenario": cloud.scenario.name,
        "runs": _runs(cloud, records),
        # A run that was only made to be compared has the same.
        "forecast": merged_forecast(records[0 if _is_compared(cloud) else -1].jobs),
        "events": cloud.events(),
        "calls": cloud.calls(),
        "leftovers": _leftovers(cloud),
    }


def _runs(cloud: LocalCloud, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return how each run went; the one that was made to be compared says how its cells do."""
    results = [_run_results(record) for record in records]
    if _is_compared(cloud):
        first, last = records[0], records[-1]
        earlier, later = (read_cells(cloud.objects, record.jobs[0]) for record in (first, last))
        results[-1]["cells"] = compare(first.run.run_id, earlier, later).document()
    return results


def _is_compared(cloud: LocalCloud) -> bool:
    return cloud.scenario.demo.compare_with_workers is not None


def _run_results(record: Record) -> dict[str, Any]:
    outcome = record.run.outcome
    return {
        "run_id": record.run.run_id,
        "outcome": None if outcome is None else outcome.value,
        "jobs": [job_results(job) for job in record.jobs],
    }


def _leftovers(cloud: LocalCloud) -> dict[str, int]:
    """Count what the run left; a machine that the API no longer shows gets a moment to end its processes."""
    deadline = time.monotonic() + _PROCESS_END_S
    while any((left := cloud.leftovers()).values()) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return left


def _survivors(processes: ProcessWatch, folder: Path) -> list[int]:
    """Return the processes that outlive the cloud; those that are just ending get a moment."""
    deadline = time.monotonic() + _PROCESS_END_S
    while True:
        left = sorted({*processes.survivors(), *processes_of(folder)})
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(_POLL_S)


@dataclass(kw_only=True, slots=True)
class _Stopwatch:
    """How long each stage took, over all runs, in seconds of real time."""

    laps: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def lap(self, name: str) -> None:
        """End a stage."""
        now = time.monotonic()
        self.laps[name] = round(self.laps.get(name, 0.0) + now - self._since, 1)
        self._since = now
