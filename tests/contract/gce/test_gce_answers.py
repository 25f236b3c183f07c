"""What the runtime `gce` makes of Compute Engine's answers.

The answers in `answers/` follow Google's published resources and documented error bodies; each says what it shows.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runtender.model import Reason, Resource, ResourceKind, ResourceState, Scope, Verdict
from runtender.observed import (
    Absent,
    Accepted,
    DeleteAnswer,
    Fate,
    LiveState,
    NameTaken,
    OperationSeen,
    Present,
    Refusal,
    Unclear,
)
from runtender.ports import ApiAnswer, FleetPage, Runtime, Sighted
from runtender.runtimes.gce_vm import GceVm

GCE: Runtime = GceVm()
ANSWERS = Path(__file__).parent / "answers"
NONCE = "d812bca2097e13d5"
KEY = "07f6250f9fd44ab0"
ROW = Resource(
    kind=ResourceKind.VM,
    name="sf-demand-0123456789ab-statistical-a1",
    location="us-central1-b",
    placement=3,
    try_number=0,
    nonce=NONCE,
    request_id="1b9d6bcd-bbfd-5b2d-9b5d-ab8dfbbd4bed",
    state=ResourceState.CREATED,
    target_id="4611686018427387904",
    since=datetime(2026, 5, 4, 12, 0, tzinfo=UTC),
)
RUNNING = Present(
    state=LiveState.RUNNING,
    native_state="RUNNING",
    uid="4611686018427387904",
    nonce=NONCE,
    key=KEY,
    plane="main",
    created_at=datetime(2026, 5, 4, 12, 0, 1, 500_000, tzinfo=UTC),
)


def answer(name: str) -> ApiAnswer:
    recorded = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    del recorded["note"]
    return ApiAnswer(**recorded)


@pytest.mark.parametrize("path", sorted(ANSWERS.glob("*.json")), ids=lambda path: str(path.stem))
def test_every_recorded_answer_says_what_it_shows(path: Path) -> None:
    assert json.loads(path.read_text(encoding="utf-8"))["note"]


def test_an_accepted_create_names_its_operation_and_its_vm() -> None:
    assert GCE.created(answer("insert_accepted")) == Accepted(
        operation="operation-1777896000000-64f0a1b2-0badcafe", target_id="4611686018427387904"
    )


def test_a_taken_name_has_to_be_looked_up() -> None:
    assert GCE.created(answer("insert_name_taken")) == NameTaken()


@pytest.mark.parametrize("name", ["server_error", "no_answer"])
def test_a_create_without_an_answer_may_have_been_taken(name: str) -> None:
    assert isinstance(GCE.created(answer(name)), Unclear)


def test_a_create_that_timed_out_at_the_server_may_have_been_taken() -> None:
    assert isinstance(GCE.created(ApiAnswer(status=408)), Unclear)


@pytest.mark.parametrize(
    ("name", "verdict", "scope", "code"),
    [
        ("insert_no_permission", Verdict.CONFIG_FAULT, Scope.PROJECT, "forbidden"),
        ("insert_rate_limited", Verdict.RATE_LIMITED, Scope.PROJECT, "RATE_LIMIT_EXCEEDED"),
        ("insert_quota", Verdict.HARD_CEILING, Scope.REGION, "quotaExceeded"),
        ("insert_quota_everywhere", Verdict.HARD_CEILING, Scope.PROJECT, "quotaExceeded"),
        ("insert_no_machine_type", Verdict.HARD_CEILING, Scope.ZONE, "invalid"),
        ("insert_no_accelerator", Verdict.HARD_CEILING, Scope.ZONE, "notFound"),
        ("insert_no_subnet", Verdict.HARD_CEILING, Scope.REGION, "invalid"),
        ("insert_stock_out_at_once", Verdict.TRANSIENT_CAPACITY, Scope.ZONE, "ZONE_RESOURCE_POOL_EXHAUSTED"),
    ],
)
def test_a_refused_create_is_classified(name: str, verdict: Verdict, scope: Scope, code: str) -> None:
    refusal = GCE.created(answer(name))
    assert isinstance(refusal, Refusal)
    assert (refusal.verdict, refusal.scope, refusal.code) == (verdict, scope, code)


def test_the_wait_that_a_rate_limit_asks_for_is_kept() -> None:
    refusal = GCE.created(answer("insert_rate_limited"))
    assert isinstance(refusal, Refusal)
    assert refusal.retry_after_s == 12.0


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("operation_running", OperationSeen(done=False, target_id="4611686018427387904")),
        ("operation_done", OperationSeen(done=True, target_id="4611686018427387904")),
        ("not_found", OperationSeen(done=True)),
        ("insert_no_permission", None),
        ("server_error", None),
        ("no_answer", None),
    ],
)
def test_an_operation_is_done_running_or_not_read(name: str, seen: OperationSeen | None) -> None:
    assert GCE.operated(answer(name)) == seen


@pytest.mark.parametrize(
    ("name", "verdict", "scope", "zones"),
    [
        ("operation_stock_out", Verdict.TRANSIENT_CAPACITY, Scope.ZONE, ("us-central1-f", "us-central1-c")),
        ("operation_quota", Verdict.HARD_CEILING, Scope.PROJECT, ()),
        ("operation_name_taken", Verdict.GONE, Scope.ZONE, ()),
    ],
)
def test_a_failed_operation_says_why(
    name: str, verdict: Verdict, scope: Scope, zones: tuple[str, ...]
) -> None:
    seen = GCE.operated(answer(name))
    assert seen is not None
    assert seen.refusal is not None
    refusal = seen.refusal
    assert (seen.done, refusal.verdict, refusal.scope, refusal.zones_available) == (
        True,
        verdict,
        scope,
        zones,
    )


@pytest.mark.parametrize(
    ("name", "sight"),
    [
        pytest.param("instance_running", RUNNING, id="running"),
        pytest.param(
            "instance_stopping",
            replace(
                RUNNING,
                state=LiveState.ENDING,
                native_state="STOPPING",
                stopped_at=datetime(2026, 5, 4, 12, 0, 31, 250_000, tzinfo=UTC),
            ),
            id="on its way down",
        ),
        pytest.param(
            "instance_of_a_stranger",
            replace(RUNNING, state=LiveState.ENDED, native_state="TERMINATED", nonce="", key="", plane=""),
            id="a stranger's",
        ),
        pytest.param("not_found", Absent(), id="absent"),
        pytest.param("instance_in_a_new_state", None, id="a state nobody described"),
        pytest.param("insert_no_permission", None, id="403"),
        pytest.param("insert_rate_limited", None, id="rate limit"),
        pytest.param("server_error", None, id="502"),
        pytest.param("no_answer", None, id="no answer"),
    ],
)
def test_only_a_404_says_that_a_vm_is_absent(name: str, sight: Present | Absent | None) -> None:
    assert GCE.looked(answer(name)) == sight


@pytest.mark.parametrize(
    ("native", "state"),
    [
        *((word, LiveState.STARTING) for word in ("PENDING", "PROVISIONING", "STAGING", "REPAIRING")),
        ("RUNNING", LiveState.RUNNING),
        *((word, LiveState.ENDING) for word in ("PENDING_STOP", "STOPPING", "SUSPENDING", "DEPROVISIONING")),
        *((word, LiveState.ENDED) for word in ("STOPPED", "SUSPENDED", "TERMINATED")),
    ],
)
def test_every_documented_state_means_something(native: str, state: LiveState) -> None:
    sight = GCE.looked(ApiAnswer(status=200, body={"id": "1", "status": native}))
    assert isinstance(sight, Present)
    assert sight.state is state


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(answer("insert_accepted"), DeleteAnswer(accepted=True), id="accepted"),
        pytest.param(answer("not_found"), DeleteAnswer(gone=True), id="gone"),
        pytest.param(ApiAnswer(status=0, text="reset"), DeleteAnswer(detail="HTTP 0: reset"), id="no answer"),
        pytest.param(ApiAnswer(status=403, text="no"), DeleteAnswer(detail="HTTP 403: no"), id="refused"),
    ],
)
def test_a_delete_is_accepted_too_late_or_to_be_tried_again(given: ApiAnswer, expected: DeleteAnswer) -> None:
    assert GCE.deleted(given) == expected


@pytest.mark.parametrize(
    ("names", "fate"),
    [
        pytest.param(["records_preempted"], Fate(reason=Reason.PREEMPTED), id="preempted"),
        pytest.param(["records_host_error"], Fate(reason=Reason.HOST_ERROR), id="its host failed"),
        pytest.param(["records_ttl"], Fate(reason=Reason.TTL_EXPIRED, deleted=True), id="its time was up"),
        pytest.param(["records_deleted"], Fate(deleted=True), id="somebody deleted it"),
        pytest.param(["records_nothing"], Fate(), id="no record"),
        pytest.param(
            ["records_first_page", "records_host_error"],
            Fate(reason=Reason.HOST_ERROR),
            id="on the second page",
        ),
        pytest.param(["records_first_page"], None, id="the last page is missing"),
        pytest.param(["records_first_page", "server_error"], None, id="a page could not be read"),
        pytest.param(["records_partial"], None, id="partial"),
        pytest.param([], None, id="nothing was read"),
    ],
)
def test_the_records_tell_a_vanished_workers_fate(names: list[str], fate: Fate | None) -> None:
    assert GCE.fated(ROW, [answer(name) for name in names]) == fate


def test_records_of_an_earlier_vm_of_the_name_do_not_count() -> None:
    nameless = replace(ROW, target_id=None, since=datetime(2026, 5, 4, 12, 30, tzinfo=UTC))
    assert GCE.fated(nameless, [answer("records_preempted")]) == Fate()
    earlier = replace(nameless, since=ROW.since)
    assert GCE.fated(earlier, [answer("records_preempted")]) == Fate(reason=Reason.PREEMPTED)


def test_a_fleet_page_holds_workers_only() -> None:
    ended = replace(
        RUNNING, state=LiveState.ENDED, native_state="TERMINATED", uid="5", nonce="00000000000000aa"
    )
    assert GCE.fleet_page(answer("fleet")) == FleetPage(
        workers=(
            Sighted(name=ROW.name, location="us-central1-b", sight=RUNNING),
            Sighted(name="sf-other-a1", location="us-east1-c", sight=ended),
        ),
        next_page="page-2",
        partial=False,
    )


@pytest.mark.parametrize("name", ["fleet_zone_unreachable", "fleet_scope_warning"])
def test_a_fleet_page_that_a_zone_did_not_answer_to_is_partial(name: str) -> None:
    assert GCE.fleet_page(answer(name)) == FleetPage(workers=(), partial=True)


@pytest.mark.parametrize("name", ["insert_no_permission", "server_error", "no_answer"])
def test_a_fleet_page_that_cannot_be_read_is_none(name: str) -> None:
    assert GCE.fleet_page(answer(name)) is None


def console(*lines: str) -> ApiAnswer:
    return ApiAnswer(status=200, body={"contents": "\r\n".join(lines), "next": "9", "start": "0"})


def said(body: Any, nonce: str = NONCE) -> str:
    words = base64.b64encode(json.dumps(body).encode()).decode()
    return f"[   61.4] google_metadata_script_runner[871]: startup-script: SF-MARKER {nonce} {words}"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(
            console("boot", said({"exit_code": 3}), "bye"), {"exit_code": 3}, id="between other lines"
        ),
        pytest.param(console(said({"n": 1}), said({"n": 2})), {"n": 2}, id="the newest of two"),
        pytest.param(console(said({"n": 1}), said({"n": 2})[:-3]), {"n": 1}, id="the newest was cut"),
        pytest.param(console(said({"n": 1}, nonce="0" * 16)), None, id="another try's"),
        pytest.param(console(said(["n"])), None, id="no object"),
        pytest.param(console("SF-MARKER " + NONCE + " %%%"), None, id="no base64"),
        pytest.param(console(), None, id="nothing"),
        pytest.param(answer("not_found"), None, id="the VM is gone"),
    ],
)
def test_the_last_words_are_the_newest_whole_marker_of_the_try(given: ApiAnswer, words: Any) -> None:
    found = GCE.last_words(given, ROW)
    assert (None if found is None else json.loads(found)) == words
