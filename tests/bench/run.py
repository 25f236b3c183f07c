"""`make bench`: what the plane costs, as ratios to what it cannot do without, and as counts.

Each measurement is a module of its own beside this one, run in a process of its own so that none warms up another. It prints a
JSON list of figures: what, value, unit, the aim if there is one (the most that the value should be), and what is behind it.
Nothing is asserted here: a slow machine is no fault. A further measurement is a further line in `MEASUREMENTS`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MEASUREMENTS = {
    "cold start": "cold_start",
    "one happy run": "happy_run",
    "a long run": "long_run",
    "an Indexed Job": "indexed_job",
    "a storm of index events": "index_storm",
    "index events": "index_rate",
    "handlers": "handler_time",
    "throughput": "throughput",
    "memory": "memory",
    "planning": "planning",
}
_ROOT = Path(__file__).parents[2]
_HEADINGS = ("", "measured", "aim", "behind it")

Figure = Mapping[str, Any]


def main() -> None:
    """Measure, and print a table, or with --json everything as one document."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="leave the others out")
    options = parser.parse_args()
    machine = _machine()
    results = {name: _measure(name) for name in options.only or MEASUREMENTS}
    if options.json:
        print(json.dumps({"machine": machine, "figures": results}, indent=2))
    else:
        print(_sentence(machine), end="\n\n")
        print("\n".join(_table(figure for figures in results.values() for figure in figures)))


def _measure(name: str) -> list[Figure]:
    print(f"measuring: {name}", file=sys.stderr)
    command = [sys.executable, "-m", f"tests.bench.{MEASUREMENTS[name]}"]
    answer = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    figures: list[Figure] = json.loads(answer.stdout)
    return figures


def _machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30),
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def _sentence(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['date']}, {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"{machine['system']} {machine['architecture']}, Python {machine['python']}"
    )


def _table(figures: Iterable[Figure]) -> list[str]:
    """Return a table that reads well as it is and is one in Markdown too."""
    rows = [_HEADINGS, *(_row(figure) for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    lines = [_line(row, widths) for row in rows]
    return [lines[0], _line(["-" * width for width in widths], widths), *lines[1:]]


def _row(figure: Figure) -> tuple[str, ...]:
    unit = f" {figure['unit']}" if figure["unit"] else ""
    aim = "" if figure["aim"] is None else f"<= {figure['aim']}{unit}"
    return (figure["figure"], f"{figure['value']}{unit}", aim, figure["detail"])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


if __name__ == "__main__":
    main()
