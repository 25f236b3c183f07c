"""Cloud Storage and tokens without the client, against the object server and a metadata server that answers as told."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from runtender.local.http import Fault, HttpRequest, HttpResponse, google_error, json_response, serve
from runtender.worker.json_api import Objects, StorageSilent

CLOSED = "127.0.0.1:9"


class Google:
    """A metadata server that gives out tokens, and a Cloud Storage that takes those it was told to."""

    def __init__(self) -> None:
        self.accepted = "token-1"
        self.answers: list[HttpResponse] = []
        self.tokens = 0

    def metadata(self, request: HttpRequest) -> HttpResponse:
        assert request.headers["metadata-flavor"] == "Google"
        if self.answers:
            return self.answers.pop(0)
        self.tokens += 1
        return json_response(200, {"access_token": f"token-{self.tokens}", "expires_in": 3600})

    def storage(self, request: HttpRequest) -> HttpResponse:
        is_known = request.headers.get("authorization") == f"Bearer {self.accepted}"
        return json_response(200, {}) if is_known else google_error(401, "authError", "no")


def objects(environ: Any = os.environ, said: list[str] | None = None, **more: Any) -> Objects:
    return Objects(environ, ([] if said is None else said).append, pauses=(0.01,), **more)


def on_google(google: Google, use: Callable[[Objects], Any], said: list[str] | None = None) -> Any:
    with serve(google.metadata) as metadata, serve(google.storage) as storage:
        environ = {"GCE_METADATA_HOST": f"127.0.0.1:{metadata.port}"}
        return use(objects(environ, said, host=f"http://127.0.0.1:{storage.port}"))


@pytest.mark.usefixtures("bucket")
def test_what_was_created_is_read_and_what_is_not_there_is_none():
    assert objects().create("code", "a/b c.json", b"{}", "application/json", 1)

    assert objects().read("code", "a/b c.json", 1) == b"{}"
    assert objects().read("code", "a/none", 1) is None
    assert objects().read("no-bucket", "a", 1) is None


def test_the_first_writer_of_an_object_wins_and_the_second_is_content(bucket):
    assert objects().create("code", "a", b"first", "text/plain", 1)
    assert objects().create("code", "a", b"second", "text/plain", 1)

    assert bucket.blob("a").download_as_bytes() == b"first"


@pytest.mark.parametrize(
    ("faults", "is_stored"),
    [
        pytest.param([Fault(answer=google_error(503, "backendError", "no"))] * 2, True, id="unavailable"),
        pytest.param([Fault(answer=google_error(429, "rateLimitExceeded", "no"))], True, id="too many calls"),
        pytest.param(
            [Fault(answer=google_error(503, "backendError", "lost"), applied=True)], True, id="answer lost"
        ),
        pytest.param(
            [Fault(answer=google_error(403, "forbidden", "no storage.objects.delete access"))],
            True,
            id="may create, may not replace",
        ),
        pytest.param([Fault(answer=google_error(403, "forbidden", "no access"))], False, id="refused"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_an_upload_is_tried_again_where_that_can_help(upload_faults, faults, is_stored):
    upload_faults += faults

    assert objects().create("code", "a", b"a", "text/plain", 10) == is_stored
    assert upload_faults == []


@pytest.mark.usefixtures("bucket")
def test_an_upload_ends_with_its_patience(upload_faults):
    upload_faults += [Fault(answer=google_error(503, "backendError", "no"))] * 500

    assert not objects().create("code", "a", b"a", "text/plain", 0.05)
    assert 0 < len(upload_faults) < 500


def test_storage_that_does_not_answer_is_asked_until_patience_ends():
    said: list[str] = []

    with pytest.raises(StorageSilent, match=r"gs://code/a is not readable: .*refused"):
        objects({"STORAGE_EMULATOR_HOST": f"http://{CLOSED}"}, said).read("code", "a", 0.05)
    assert len(said) > 1


def test_a_token_is_asked_for_once():
    google = Google()

    def use(storage: Objects) -> list[bytes | None]:
        return [storage.read("code", "a", 1) for _ in range(3)]

    assert on_google(google, use) == [b"{}"] * 3
    assert google.tokens == 1


def test_a_token_that_is_refused_is_replaced():
    google = Google()
    google.accepted = "token-2"

    assert on_google(google, lambda storage: storage.create("code", "a", b"a", "text/plain", 10))
    assert google.tokens == 2


@pytest.mark.parametrize(
    "early",
    [
        pytest.param(google_error(404, "notFound", "no"), id="no account yet"),
        pytest.param(google_error(503, "backendError", "no"), id="not ready"),
        pytest.param(HttpResponse(status=200, headers={}, body=b"<html>"), id="not JSON"),
        pytest.param(json_response(200, {"error": "no"}), id="no token"),
    ],
)
def test_a_metadata_server_that_is_not_up_yet_is_waited_for(early):
    google = Google()
    google.answers = [early, early]

    # Taken for storage's own, its 404 would say that there is no such object.
    assert on_google(google, lambda storage: storage.read("code", "a", 10)) == b"{}"
    assert google.answers == []
