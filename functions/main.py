"""The plane's entry points: parse the event, step, answer. All three end in `Engine.step`.

An event is acknowledged by returning, and comes again by raising. `Retryable` is raised on purpose; a bug raises too,
so that its message ends in the dead-letter topic instead of being lost.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cache, wraps
from typing import TYPE_CHECKING

import functions_framework

from runtender import logs, wiring
from runtender.engine import Engine, Watchdog
from runtender.errors import Retryable
from runtender.ids import parse_marker_object
from runtender.wire.envelope import read_delivery
from runtender.wire.events import Event, MalformedEvent, read_message, read_object

if TYPE_CHECKING:
    from flask import Request

    from runtender.engine import Plane

_LOG = logging.getLogger("runtender.functions")

# An old tick has nothing to say that the newest does not.
_STALE_TICK = timedelta(minutes=3)


@cache
def _plane() -> Plane:
    logs.set_up()
    # Nothing that an import makes is garbage. To look for some would cost a tenth of a cold start.
    gc.disable()
    try:
        return wiring.plane()
    finally:
        gc.freeze()
        gc.enable()


@cache
def _engine() -> Engine:
    return Engine(_plane())


def _entry_point(handle: Callable[[Event], None]) -> functions_framework.HTTPFunction:
    """Serve a handler of events over HTTP. Pub/Sub delivers anew whatever is not answered by 2xx."""

    @functions_framework.http
    @wraps(handle)
    def serve(request: Request) -> tuple[str, int]:
        if request.method != "POST":
            return "an event comes by POST", 405
        try:
            handle(read_delivery(dict(request.headers), request.get_data()))
        except Retryable as error:
            # Weather, not a crash: no traceback for it in the error reports.
            _LOG.warning("comes again", extra={"error": str(error)})
            return "comes again", 503
        return "", 204

    return serve


@_entry_point
def on_submit(event: Event) -> None:
    """Take a message of the submit topic in, and step the jobs it names."""
    plane = _plane()
    from runtender.engine.intake import Intake  # noqa: PLC0415 - the planner; ticks and markers start without it

    message = read_message(event, plane.clock.now())
    receipt = Intake(plane).receive(
        message.body, message_id=message.message_id, published_at=message.published_at
    )
    _LOG.info(
        "submit", extra={"state": receipt.state, "run_id": receipt.run_id, "message_id": message.message_id}
    )
    _engine().step_all(receipt.job_keys, thorough=True, wait=plane.settings.timing.provision_wait)


@_entry_point
def on_marker(event: Event) -> None:
    """Look at the job below whose nonce an object was written; what it says is read from the object, not from here."""
    _plane()
    try:
        name = read_object(event)
    except MalformedEvent as error:
        _LOG.warning("not a storage event", extra={"error": str(error)})
        return
    where = parse_marker_object(name)
    if where is None:
        _LOG.info("no marker", extra={"object": name[:200]})
        return
    _engine().step(where.job_key)


@_entry_point
def on_tick(event: Event) -> None:
    """Look at every job that is due, and at what the fleet list shows."""
    plane = _plane()
    published_at: datetime = read_message(event, plane.clock.now()).published_at
    if plane.clock.now() - published_at > _STALE_TICK:
        return
    looked = Watchdog(plane, _engine()).tick()
    _LOG.info("tick", extra={"jobs": looked})
