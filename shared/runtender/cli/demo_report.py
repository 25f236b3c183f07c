"""What the demo shows at its end: the forecast it made, what that took, and that nothing is left of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runtender.cli.exits import Exit
from runtender.cli.outcomes import exit_for
from runtender.cli.parts import Part, facts, heading, table
from runtender.cli.text import span
from runtender.model import Outcome

Document = Mapping[str, Any]


def demo_exit(document: Document) -> Exit:
    """Return the exit code of a demo: its first run that did not succeed, else 1 if something is left over.

    But 1 wherever something did not come as its scenario expects it.
    """
    if unmet(document):
        return Exit.ERROR
    ends = [exit_for(Outcome(run["outcome"])) for run in document["runs"]]
    left = Exit.ERROR if any(document["leftovers"].values()) else Exit.OK
    return next((end for end in ends if end is not Exit.OK), left)


def unmet(document: Document) -> list[str]:
    """Say in a sentence each what did not come as the scenario expects it."""
    return [
        f"not as scenario {document['scenario']} expects: {each['what']} is {each['found']}, not {each['expected']}"
        for each in document.get("expectations", ())
        if not each["met"]
    ]


def demo_parts(document: Document) -> Iterator[Part]:
    """Show the demo's document (`local.demo.run_demo`) as tables; parts that it lacks are left out."""
    for number, run in enumerate(document["runs"]):
        if number:
            yield ""
        details = [job["detail"] for job in run["jobs"] if job.get("detail")]
        yield facts([("Run", run["run_id"]), ("Outcome", run["outcome"]), ("Detail", "; ".join(details))])
        yield from _jobs(run["jobs"])
        yield from _placements(run["jobs"])
        if cells := run.get("cells"):
            yield facts([("Cells", _agreement(cells))])
    if document.get("forecast"):
        yield from _forecast(document["forecast"])
    yield from _counts("Events handled", document.get("events", {}))
    yield from _counts("Google API calls", document.get("calls", {}))
    yield from _costs(document)
    yield from _expectations(document.get("expectations", ()))
    left = ", ".join(f"{count} {kind}" for kind, count in document["leftovers"].items() if count)
    yield heading(f"Leftovers: {left or 'none'}")


def _jobs(jobs: Sequence[Document]) -> Iterator[Part]:
    phases = [job.get("phases", {}) for job in jobs]
    rows = [
        (
            job.get("family", ""),
            job["runtime"],
            _end(job),
            *(span(took.get(name)) for name in ("provision_s", "execute_s", "total_wall_s")),
        )
        for job, took in zip(jobs, phases, strict=True)
    ]
    yield heading("Jobs")
    columns = ("FAMILY", "RUNTIME", "OUTCOME", "PROVISION", "EXECUTE", "TOTAL")
    yield table(columns, rows, numbers=columns[3:])


def _end(job: Document) -> str:
    outcome, reason = job.get("outcome") or "", job.get("reason")
    return f"{outcome} ({reason})" if reason else outcome


def _placements(jobs: Sequence[Document]) -> Iterator[Part]:
    rows = [
        (str(number), placement["place"], placement["result"])
        for job in jobs
        for number, placement in enumerate(job.get("placements", ()), start=1)
    ]
    if rows:
        yield heading("Placements tried")
        yield table(("#", "PLACE", "RESULT"), rows, numbers=["#"])


def _agreement(cells: Document) -> str:
    """Say how a run's cells compare with those of the run before it."""
    if cells["equal"]:
        return f"all {cells['cells']} equal those of {cells['run_id']}"
    counts = ", ".join(f"{cells[name]} {name}" for name in ("missing", "added", "different"))
    return f"not those of {cells['run_id']}, which has {cells['cells']}: {counts}"


def _forecast(forecast: Document) -> Iterator[Part]:
    yield heading(f"Forecast of {forecast['series']} series, {forecast['rows']} rows")
    scores = dict(forecast["models"])
    if forecast.get("baseline"):
        scores["seasonal naive"] = forecast["baseline"]
    rows = [(name, _score(score.get("mase")), _score(score.get("smape"))) for name, score in scores.items()]
    yield table(("MODEL", "MASE", "SMAPE"), rows, numbers=["MASE", "SMAPE"])


def _expectations(expectations: Sequence[Document]) -> Iterator[Part]:
    if expectations:
        rows = [
            (each["what"], str(each["expected"]), "met" if each["met"] else f"not met: {each['found']}")
            for each in expectations
        ]
        yield heading("As the scenario expects it")
        yield table(("WHAT", "EXPECTED", "FOUND"), rows)


def _costs(document: Document) -> Iterator[Part]:
    laps = document.get("phases", {})
    peak = document.get("memory", {}).get("peak_mib")
    if laps or peak:
        took = ", ".join(f"{name.removesuffix('_s')} {span(seconds)}" for name, seconds in laps.items())
        yield heading("This machine")
        yield facts(
            [("Time", took), ("Memory", f"{peak} MiB at most, all processes together" if peak else "")]
        )


def _counts(title: str, counts: Mapping[str, int]) -> Iterator[Part]:
    if counts:
        yield heading(title)
        yield table(
            ("WHAT", "COUNT"),
            [(name, str(count)) for name, count in sorted(counts.items())],
            numbers=["COUNT"],
        )


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
