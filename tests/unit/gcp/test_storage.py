"""The Objects port against the local object server, and against a scripted one where answers go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from runtender.errors import Rejected, Retryable
from runtender.gcp.storage import StorageObjects
from runtender.local.http import DROPPED, HttpRequest, HttpResponse, google_error, json_response
from runtender.local.objects import ObjectsCore, ObjectServer
from runtender.ports import ObjectPage, Objects

NOW = datetime(2026, 3, 1, 12, 30, 15, 250_000, tzinfo=UTC)
NAME = "runs/status/sf-r-1-ml-a1/0123456789abcdef/0.terminal.json"
ODD_NAME = "cells/a b/ü?#%2F+&.json"


@pytest.fixture
def core():
    core = ObjectsCore()
    core.make_bucket("b", NOW)
    return core


@pytest.fixture
def objects(core, session, clock) -> Iterator[Objects]:
    with ObjectServer(core, now=lambda: NOW) as server:
        yield StorageObjects(session, server.url, clock=clock)


@pytest.fixture
def scripted(service, session, clock):
    return StorageObjects(session, service.url, clock=clock)


@pytest.mark.parametrize("name", [NAME, ODD_NAME])
def test_an_object_reads_back_as_it_was_created(objects, name):
    assert objects.create("b", name, b'{"a": 1}') is True
    assert objects.read("b", name, limit=100) == b'{"a": 1}'
    found = objects.stat("b", name)
    assert found is not None
    assert (found.bucket, found.name, found.size, found.created_at) == ("b", name, 8, NOW)
    assert found.generation > 0


def test_an_object_that_is_there_is_not_created_again(objects):
    objects.create("b", NAME, b"first")
    assert objects.create("b", NAME, b"second") is False
    assert objects.read("b", NAME, limit=100) == b"first"


def test_a_put_replaces_what_is_there(objects):
    objects.put("b", NAME, b"first")
    objects.put("b", NAME, b"second", content_type="text/plain")
    assert objects.read("b", NAME, limit=100) == b"second"


def test_what_is_not_there_reads_as_none(objects):
    assert objects.stat("b", NAME) is None
    assert objects.read("b", NAME, limit=100) is None


@pytest.mark.parametrize(
    ("limit", "body"), [(1, b"0"), (4, b"0123"), (10, b"0123456789"), (11, b"0123456789")]
)
def test_of_a_long_object_only_the_first_bytes_are_read(objects, limit, body):
    objects.put("b", NAME, b"0123456789")
    assert objects.read("b", NAME, limit=limit) == body


def test_an_empty_object_is_there_and_empty(objects):
    objects.create("b", NAME, b"")
    assert objects.read("b", NAME, limit=100) == b""


def test_a_listing_is_in_the_order_of_names_and_below_its_prefix(objects):
    for name in ("a/2", "a/10", "a/1", "a", "b/1"):
        objects.put("b", name, b"x")
    page = objects.list("b", "a/", limit=10)
    assert ([found.name for found in page.objects], page.complete) == (["a/1", "a/10", "a/2"], True)
    assert objects.list("b", "c/", limit=10) == ObjectPage(objects=())


@pytest.mark.parametrize(
    ("limit", "complete"),
    [
        pytest.param(1000, False, id="a whole page, cut"),
        pytest.param(1001, False, id="into the second page, cut"),
        pytest.param(1003, True, id="as many as there are"),
        pytest.param(5000, True, id="more than there are"),
    ],
)
def test_a_listing_goes_over_all_pages_up_to_its_limit(core, objects, limit, complete):
    for number in range(1003):
        query = {"uploadType": "media", "name": f"cells/{number:06}"}
        core.handle(HttpRequest(method="POST", path="/upload/storage/v1/b/b/o", query=query), NOW)
    page = objects.list("b", "cells/", limit=limit)
    assert [found.name for found in page.objects] == [
        f"cells/{number:06}" for number in range(min(limit, 1003))
    ]
    assert page.complete is complete


CALLS = {
    "stat": lambda objects: objects.stat("b", "n"),
    "read": lambda objects: objects.read("b", "n", limit=10),
    "list": lambda objects: objects.list("b", "n", limit=10),
    "create": lambda objects: objects.create("b", "n", b"x"),
    "put": lambda objects: objects.put("b", "n", b"x"),
}
every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)


@every_call
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_busy_server_is_asked_again_and_then_left_for_later(service, scripted, clock, call, status):
    service.answers = [HttpResponse(status=status, headers={"Retry-After": "3"})]
    with pytest.raises(Retryable, match=f"gs://b/n now; Cloud Storage answered {status}") as trouble:
        call(scripted)
    assert (len(service.requests), clock.sleeps, trouble.value.after) == (4, [3.0, 3.0, 3.0], 3.0)


@every_call
def test_a_lost_connection_is_left_for_later(service, scripted, call):
    service.answers = [DROPPED]
    with pytest.raises(Retryable, match="answered nothing: ConnectionError"):
        call(scripted)


@every_call
@pytest.mark.parametrize("status", [401, 403])
def test_a_denied_call_is_rejected_with_what_to_grant(service, scripted, call, status):
    service.answers = [google_error(status, "forbidden", "sa@p does not have storage.objects.get access")]
    with pytest.raises(Rejected, match=r"gs://b/n: may not .*storage\.objects\.get access.*; grant"):
        call(scripted)
    assert len(service.requests) == 1


@pytest.mark.parametrize("name", ["list", "create", "put"])
def test_a_bucket_that_is_not_there_is_rejected_by_name(service, scripted, name):
    service.answers = [google_error(404, "notFound", "The specified bucket does not exist.")]
    with pytest.raises(Rejected, match=r"gs://b/n: there is no such bucket.*name an existing bucket"):
        CALLS[name](scripted)


@every_call
def test_an_answer_that_nobody_documented_is_left_for_later(service, scripted, call):
    service.answers = [HttpResponse(status=418, body=b"x" * 10_000)]
    with pytest.raises(Retryable, match="418") as trouble:
        call(scripted)
    assert len(str(trouble.value)) < 1_000


def test_a_create_whose_answer_was_lost_says_that_the_object_is_there(service, scripted):
    """Its own echo: callers read the object to learn whose it is."""
    service.answers = [
        DROPPED,
        google_error(412, "conditionNotMet", "At least one precondition did not hold."),
    ]
    assert scripted.create("b", "n", b"x") is False
    assert [request.query["ifGenerationMatch"] for request in service.requests] == ["0", "0"]


def test_a_create_that_may_not_overwrite_says_that_the_object_is_there(service, scripted):
    service.answers = [google_error(403, "forbidden", "w@p does not have storage.objects.delete access")]
    assert scripted.create("b", "n", b"x") is False


def test_a_listing_asks_for_what_it_uses_only(service, scripted):
    service.answers = [json_response(200, {})]
    scripted.list("b", "cells/", limit=7)
    (request,) = service.requests
    fields = "items(name,size,generation,timeCreated),nextPageToken"
    assert request.query == {"prefix": "cells/", "maxResults": "7", "fields": fields}


def test_a_listing_that_never_ends_is_cut(service, scripted):
    service.answers = [json_response(200, {"nextPageToken": "again"})]
    assert scripted.list("b", "", limit=10) == ObjectPage(objects=(), complete=False)
