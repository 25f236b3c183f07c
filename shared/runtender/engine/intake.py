"""What comes in on the submit topic: a run is stored once however often its message arrives.

The request row, the run header and its jobs are written in one batch; the row's id is derived from the request id, so
that a repeated message meets its own row and gets the same answer. Bad input is acknowledged, recorded and copied to the
dead-letter topic; only what another try can mend is raised as `Retryable`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from runtender.decide import request_cancel
from runtender.engine.accept import Acceptance, Acceptor
from runtender.engine.plane import Plane
from runtender.engine.saving import Saver
from runtender.errors import Conflict, Rejected, Retryable
from runtender.ids import request_document_id
from runtender.model import SubmitAction, SubmitRequest
from runtender.ports import Create, Snapshot
from runtender.redaction import holds_a_secret, redacted, without_secrets
from runtender.wire.documents import SCHEMA, request_path, run_from_document, run_path
from runtender.wire.json_input import read_json_object
from runtender.wire.messages import parse_submit, peek_request_id

_LOG = logging.getLogger("runtender.intake")

# A cancel may overtake its submit; after this long the run is taken for unknown.
_CANCEL_PATIENCE = timedelta(minutes=10)
_MOST_RACES = 5
_MOST_SHOWN_ERRORS = 50
_MOST_FIELD_TEXT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What became of a message: its request row's state, and the jobs to be looked at now."""

    state: str
    run_id: str | None = None
    job_keys: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


class Intake:
    """Receives submit messages."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._saver = Saver(plane)
        self._acceptor = Acceptor(plane)

    def receive(self, body: bytes, *, message_id: str, published_at: datetime) -> Receipt:
        """Take one message in; raises `Retryable` when it should come again."""
        try:
            request = parse_submit(body, message_id=message_id, published_at=published_at)
        except Rejected as rejected:
            request_id = peek_request_id(body) or message_id
            return self._reject(body, request_id, message_id, None, rejected)
        try:
            return self._dispatch(request)
        except Rejected as rejected:
            return self._reject(body, request.request_id, message_id, request, rejected)

    def _dispatch(self, request: SubmitRequest) -> Receipt:
        match request.action:
            case SubmitAction.SUBMIT:
                return self._start(request, self._acceptor.accept)
            case SubmitAction.CANCEL:
                return self._cancel(request)
            case SubmitAction.STEP:
                return Receipt(state="accepted", job_keys=(request.job_key or "",))
            case SubmitAction.RETRY:
                return self._start(request, self._acceptor.retry)

    def _start(self, request: SubmitRequest, accept: Callable[[SubmitRequest], Acceptance]) -> Receipt:
        for _ in range(_MOST_RACES):
            acceptance = accept(request)
            row = self._row(request, acceptance.state, run_id=acceptance.run_id, errors=acceptance.notes)
            try:
                self._plane.store.commit([row, *acceptance.writes])
            except Conflict:
                # The same message, or another one for this run, was faster.
                known = self._plane.store.get(row.path)
                if known is not None:
                    return _answer_again(known)
                continue
            return _receipt(acceptance)
        raise Retryable(f"run of request {request.request_id!r} is submitted by many at once")

    def _cancel(self, request: SubmitRequest) -> Receipt:
        if (known := self._known(request.request_id)) is not None:
            return _answer_again(known)
        run_id = request.run_id or ""
        snapshot = self._plane.store.get(run_path(run_id))
        if snapshot is None:
            if self._plane.clock.now() - request.published_at < _CANCEL_PATIENCE:
                raise Retryable(f"run {run_id!r} is not known (yet)")
            raise Rejected.because("run_id", f"no run {run_id!r} is known", "see `runtender list`")
        keys = tuple(entry.job_key for entry in run_from_document(snapshot.data).families.values())
        for key in keys:
            loaded = self._saver.load(key)
            if loaded is not None:
                self._saver.record(loaded, request_cancel)
        self._note(self._row(request, "accepted", run_id=run_id))
        return Receipt(state="accepted", run_id=run_id, job_keys=keys)

    def _reject(
        self, body: bytes, request_id: str, message_id: str, request: SubmitRequest | None, why: Rejected
    ) -> Receipt:
        if (known := self._known(request_id)) is not None:
            # It comes again, or what stands in its way now is what this very message has started.
            return _answer_again(known)
        errors = tuple(redacted(str(fault))[:1000] for fault in why.faults[:_MOST_SHOWN_ERRORS])
        # What is wrong may quote the message, and that is whatever somebody sent: the row tells, the log does not.
        fields = [fault.field[:_MOST_FIELD_TEXT] for fault in why.faults[:_MOST_SHOWN_ERRORS]]
        _LOG.warning("submit rejected", extra={"request_id": request_id, "fields": fields})
        attributes = {"request_id": request_id[:500], "message_id": message_id, "reason": errors[0][:500]}
        self._plane.topics.publish(self._plane.settings.dead_letter_topic, _safe_copy(body), attributes)
        action = request.action if request else None
        run_id = request.run_id if request else None
        data = self._row_data(request_id, message_id, "rejected", action=action, run_id=run_id, errors=errors)
        self._note(Create(path=request_path(request_document_id(request_id)), data=data))
        return Receipt(state="rejected", run_id=run_id, errors=errors)

    def _known(self, request_id: str) -> Snapshot | None:
        """Return the row of a request that has its answer already."""
        return self._plane.store.get(request_path(request_document_id(request_id)))

    def _note(self, row: Create) -> None:
        """Write a request row; one that stands already belongs to an earlier delivery and keeps its word."""
        try:
            self._plane.store.commit([row])
        except Conflict:
            return

    def _row(
        self, request: SubmitRequest, state: str, *, run_id: str, errors: tuple[str, ...] = ()
    ) -> Create:
        data = self._row_data(
            request.request_id, request.message_id, state, action=request.action, run_id=run_id, errors=errors
        )
        return Create(path=request_path(request_document_id(request.request_id)), data=data)

    def _row_data(
        self,
        request_id: str,
        message_id: str,
        state: str,
        *,
        action: SubmitAction | None,
        run_id: str | None,
        errors: tuple[str, ...],
    ) -> Mapping[str, Any]:
        return {
            "schema": SCHEMA,
            "request_id": request_id,
            "state": state,
            "action": action.value if action else None,
            "run_id": run_id,
            "errors": list(errors),
            "message_id": message_id,
            "received_at": self._plane.clock.now(),
        }


def _safe_copy(body: bytes) -> bytes:
    """Return a message without the secrets in it, if there are any: its copy waits for people, and may be shown to them."""
    try:
        message = read_json_object(body)
    except ValueError:
        text = body.decode(errors="replace")
        return redacted(text).encode() if holds_a_secret(text) else body
    safe = without_secrets(message)
    return body if safe == message else json.dumps(safe).encode()


def _receipt(acceptance: Acceptance) -> Receipt:
    return Receipt(
        state=acceptance.state,
        run_id=acceptance.run_id,
        job_keys=acceptance.job_keys,
        errors=acceptance.notes,
    )


def _answer_again(known: Snapshot) -> Receipt:
    """The same request id gets the same answer; the ticks look after what it started."""
    return Receipt(
        state=str(known.data.get("state")),
        run_id=known.data.get("run_id"),
        errors=tuple(known.data.get("errors", ())),
    )
