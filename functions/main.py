"""The plane's entry points: parse the event, step, answer. All three end in `Engine.step`.

An event is acknowledged by returning, and comes again by raising. `Retryable` is raised on purpose; a bug raises too,
so that its message ends in the dead-letter topic instead of being lost.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from typing import TYPE_CHECKING

import functions_framework

from runtender import logs
from runtender.errors import Retryable
from runtender.wire.envelope import read_delivery

if TYPE_CHECKING:
    from flask import Request

    from runtender.engine.handlers import Handlers
    from runtender.wire.events import Event

_LOG = logging.getLogger("runtender.functions")


@cache
def _handlers() -> Handlers:
    logs.set_up(project=os.environ.get("SF_PROJECT_ID", ""))
    # Nothing that an import makes is garbage. To look for some would cost a tenth of a cold start.
    gc.disable()
    try:
        from runtender import wiring  # noqa: PLC0415 - nearly all there is to import, so it belongs in here
        from runtender.engine.handlers import Handlers  # noqa: PLC0415 - the same

        return Handlers(wiring.plane())
    finally:
        gc.freeze()
        gc.enable()


def _entry_point(handle: Callable[[Event], None]) -> functions_framework.HTTPFunction:
    """Serve a handler of events over HTTP. Pub/Sub delivers anew whatever is not answered by 2xx."""

    @functions_framework.http
    @wraps(handle)
    def serve(request: Request) -> tuple[str, int]:
        if request.method != "POST":
            return "an event comes by POST", 405
        event = read_delivery(dict(request.headers), request.get_data())
        with logs.about(event_id=event.event_id, trace_id=event.trace_id):
            try:
                handle(event)
            except Retryable as error:
                # Weather, not a crash: no traceback for it in the error reports.
                _LOG.warning("comes again", extra={"error": str(error)})
                return "comes again", 503
        return "", 204

    return serve


@_entry_point
def on_submit(event: Event) -> None:
    """Take a message of the submit topic in, and step the jobs it names."""
    _handlers().on_submit(event)


@_entry_point
def on_marker(event: Event) -> None:
    """Look at the job below whose nonce an object was written; what it says is read from the object, not from here."""
    _handlers().on_marker(event)


@_entry_point
def on_tick(event: Event) -> None:
    """Look at every job that is due, and at what the fleet list shows."""
    _handlers().on_tick(event)
