"""Entry points that do only a part of the plane's work, for comparison, under the names that the functions' host serves.

`on_submit` takes a submit message in and goes no further. The others know nothing of the plane. `on_marker` commits the
documents of an accepted submit, already made, once per message: that is what no intake can do without. `on_tick` takes the
event of a marker and reads the job that it names, and no more.
"""

from __future__ import annotations

import json
from functools import cache

import functions_framework
from flask import Request
from tests.bench.world import documents_of_a_submit

from runtender import wiring
from runtender.engine import Plane
from runtender.engine.intake import Intake
from runtender.ids import parse_marker_object
from runtender.ports import Create, Store
from runtender.wire.documents import job_path
from runtender.wire.envelope import read_delivery
from runtender.wire.events import read_message

_DOCUMENTS = documents_of_a_submit()


@cache
def _plane() -> Plane:
    return wiring.plane()


@cache
def _store() -> Store:
    return wiring.store(wiring.settings())


@functions_framework.http
def on_submit(request: Request) -> tuple[str, int]:
    """Take a message in."""
    plane = _plane()
    message = read_message(read_delivery(dict(request.headers), request.get_data()), plane.clock.now())
    Intake(plane).receive(message.body, message_id=message.message_id, published_at=message.published_at)
    return "", 204


@functions_framework.http
def on_marker(request: Request) -> tuple[str, int]:
    """Commit a submit's documents."""
    message_id = json.loads(request.get_data())["message"]["messageId"]
    _store().commit(
        [Create(path=f"{collection}/{message_id}", data=data) for collection, data in _DOCUMENTS.items()]
    )
    return "", 204


@functions_framework.http
def on_tick(request: Request) -> tuple[str, int]:
    """Read the job that a marker's event names."""
    where = parse_marker_object(json.loads(request.get_data())["message"]["attributes"]["objectId"])
    assert where is not None
    assert _store().get(job_path(where.job_key)) is not None
    return "", 204
