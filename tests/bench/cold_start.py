"""How long each entry point takes to wake up, against functions-framework with a function that does nothing.

Run by `run.py`; prints its figures as JSON. A start is a whole process: interpreter, framework, entry point, plane on Google's
backend, up to the answer to its first event. Firestore's place is taken by a gRPC service that refuses every call, so that an
event goes as far as its first look at the store and no network is measured. Time is time on the processor, because that is
what a start needs and what other programs on the machine do not change; the sorts of start take turns.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]

from runtender.ids import job_key, marker_object

MAIN = Path(__file__).parents[2] / "functions" / "main.py"
FLOOR = "serve"
_EMPTY_FUNCTION = """
import functions_framework

@functions_framework.http
def serve(request):
    return "", 204
"""
# Prints the seconds since the process began, those of them that loading took, and its memory in MiB.
_START = """
import time
began = time.process_time()
import resource, sys
import functions_framework
target, source, body = sys.argv[1:]
client = functions_framework.create_app(target, source).test_client()
answer = client.post("/", data=body, content_type="application/json")
now = time.process_time()
print(answer.status_code, now, now - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
_CONFIG = {
    "run_name": "flights",
    "python_runtime": "gce",
    "data": {"source_table": "gs://wh/panel.csv"},
    "models": ["theta"],
}
_MARKER = marker_object(job_key("flights-0123456789ab", "statistical", 1), "0123456789abcdef", 0, "started")


def _push(data: Mapping[str, Any], **attributes: str) -> str:
    body = base64.b64encode(json.dumps(data).encode()).decode()
    return json.dumps(
        {"message": {"data": body, "attributes": attributes, "messageId": "1"}, "subscription": "s"}
    )


EVENTS = {
    "on_submit": _push({"config": _CONFIG}),
    "on_marker": _push({}, objectId=_MARKER),
    "on_tick": _push({}),
    # The last: whatever still has to be compiled in the first round is not on its account.
    FLOOR: _push({}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """One start: seconds of processor time in all and for what follows the interpreter's own start, memory in MiB."""

    process_s: float
    load_s: float
    memory_mib: float


def measure(rounds: int, main: Path = MAIN, *, as_compiled: bool = False) -> Mapping[str, list[Start]]:
    """Start each entry point of `main` `rounds` times, in turn.

    A round before them only fills a cache of compiled code of its own; `as_compiled` does without, and takes what lies beside
    the source.
    """
    starts: Mapping[str, list[Start]] = defaultdict(list)
    with _refusing_firestore() as address, tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.py")
        empty.write_text(_EMPTY_FUNCTION)
        compiled = {} if as_compiled else {"PYTHONPYCACHEPREFIX": str(Path(folder, "compiled"))}
        environment = {**_environment(address, main), **compiled}
        for turn in range(rounds if as_compiled else rounds + 1):
            for target in EVENTS:
                start = _start(target, empty if target == FLOOR else main, environment)
                if turn or as_compiled:
                    starts[target].append(start)
    return starts


@contextmanager
def _refusing_firestore() -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(grace=None).wait()


def _environment(firestore: str, main: Path) -> dict[str, str]:
    foreign = ("SF_", "GOOGLE_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {
        **kept,
        "FIRESTORE_EMULATOR_HOST": firestore,
        # A metadata server answers at once, or is not there: to look for it again and again is nothing of the start.
        "NO_GCE_CHECK": "true",
        # A bundle has the package beside its entry points; in a checkout it is installed.
        "PYTHONPATH": str(main.parent),
        "SF_CODE_BUCKET": "code",
        "SF_PROJECT_ID": "p",
    }


def _start(target: str, source: Path, environment: Mapping[str, str]) -> Start:
    command = [sys.executable, "-c", _START, target, str(source), EVENTS[target]]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    status, process_s, load_s, memory_mib = child.stdout.splitlines()[-1].split()
    expected = "204" if target == FLOOR else "503"
    if status != expected:
        raise SystemExit(f"{target} answered {status}, not {expected}:\n{child.stdout}{child.stderr}")
    return Start(process_s=float(process_s), load_s=float(load_s), memory_mib=float(memory_mib))


def figures(starts: Mapping[str, list[Start]]) -> list[dict[str, Any]]:
    """Return each entry point's start as a multiple of the framework's alone."""
    floor = median(starts[FLOOR])
    return [_figure(target, median(starts[target]), floor) for target in starts if target != FLOOR]


def _figure(target: str, start: Start, floor: Start) -> dict[str, Any]:
    detail = (
        f"{start.process_s * 1000:.0f} ms against {floor.process_s * 1000:.0f} ms; "
        f"without the interpreter's own start {start.load_s / floor.load_s:.2f} x; "
        f"{start.memory_mib:.0f} MiB against {floor.memory_mib:.0f} MiB"
    )
    ratio = round(start.process_s / floor.process_s, 2)
    return {"figure": f"cold start of {target}", "value": ratio, "unit": "x", "aim": 3, "detail": detail}


def median(starts: list[Start]) -> Start:
    """Return the median of each figure."""
    return Start(
        **{
            field.name: statistics.median(getattr(one, field.name) for one in starts)
            for field in fields(Start)
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="starts per entry point")
    parser.add_argument(
        "--as-compiled",
        action="store_true",
        help="take code as it is compiled already, without a round for it",
    )
    options = parser.parse_args()
    print(json.dumps(figures(measure(options.rounds, as_compiled=options.as_compiled))))
