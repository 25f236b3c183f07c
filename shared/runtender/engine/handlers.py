"""What each entry point does with its event, without the framework that brings it.

The deployed functions and the simulation call the same three handlers. An event is acknowledged by returning and comes
again by raising.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from runtender.engine.plane import Plane
from runtender.engine.step import Engine
from runtender.engine.tick import Watchdog
from runtender.ids import parse_marker_object
from runtender.wire.events import Event, MalformedEvent, read_message, read_object

_LOG = logging.getLogger("runtender.handlers")

# An old tick has nothing to say that the newest does not.
_STALE_TICK = timedelta(minutes=3)


class Handlers:
    """The plane's answers to its three kinds of events. One instance serves all events of a process."""

    def __init__(self, plane: Plane, engine: Engine | None = None) -> None:
        self._plane = plane
        self._engine = engine or Engine(plane)
        self._watchdog = Watchdog(plane, self._engine)

    def on_submit(self, event: Event) -> None:
        """Take a message of the submit topic in, and step the jobs it names."""
        from runtender.engine.intake import Intake  # noqa: PLC0415 - the planner; ticks and markers start without it

        plane = self._plane
        message = read_message(event, plane.clock.now())
        receipt = Intake(plane).receive(
            message.body, message_id=message.message_id, published_at=message.published_at
        )
        facts = {"state": receipt.state, "run_id": receipt.run_id, "message_id": message.message_id}
        _LOG.info("submit", extra=facts)
        self._engine.step_all(receipt.job_keys, thorough=True, wait=plane.settings.timing.provision_wait)

    def on_marker(self, event: Event) -> None:
        """Look at the job below whose nonce an object was written; what it says is read from the object, not from here."""
        try:
            name = read_object(event)
        except MalformedEvent as error:
            _LOG.warning("not a storage event", extra={"error": str(error)})
            return
        where = parse_marker_object(name)
        if where is None:
            _LOG.info("no marker", extra={"object": name[:200]})
            return
        self._engine.notice(where)

    def on_tick(self, event: Event) -> None:
        """Look at every job that is due, and at what the fleet list shows."""
        now = self._plane.clock.now()
        if now - read_message(event, now).published_at > _STALE_TICK:
            return
        looked = self._watchdog.tick()
        _LOG.info("tick", extra={"jobs": looked})
