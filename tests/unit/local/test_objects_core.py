"""The object store's own rules, with a clock that the test holds. What clients see is in the contract tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtender.local.http import DROPPED, Fault, HttpRequest, HttpResponse
from runtender.local.objects import Notification, ObjectsCore

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
UPLOAD = "/upload/storage/v1/b/code/o"


@pytest.fixture
def core() -> ObjectsCore:
    core = ObjectsCore()
    core.make_bucket("code", NOW)
    return core


def upload(
    core: ObjectsCore, name: str, body: bytes = b"x", now: datetime = NOW, **query: str
) -> HttpResponse:
    query = {"uploadType": "media", "name": name, **query}
    return core.handle(HttpRequest(method="POST", path=UPLOAD, query=query, body=body), now)


def get(core: ObjectsCore, name: str, **query: str) -> HttpResponse:
    return core.handle(HttpRequest(method="GET", path=f"/storage/v1/b/code/o/{name}", query=query), NOW)


def test_generations_grow_within_one_moment_and_against_a_clock_set_back(core):
    moments = (NOW, NOW, NOW - timedelta(hours=1), NOW + timedelta(seconds=1))
    generations = [int(upload(core, "x", now=moment).json()["generation"]) for moment in moments]
    assert generations[0] == int(NOW.timestamp() * 1_000_000)
    assert generations == sorted(set(generations))


def test_an_objects_time_is_the_servers(core):
    resource = upload(core, "x").json()
    assert resource["timeCreated"] == resource["updated"] == "2026-01-02T03:04:05.678Z"


@pytest.mark.parametrize(
    ("query", "there", "status"),
    [
        pytest.param({"ifGenerationMatch": "0"}, False, 200, id="must not exist, does not"),
        pytest.param({"ifGenerationMatch": "0"}, True, 412, id="must not exist, does"),
        pytest.param({"ifGenerationMatch": "{generation}"}, True, 200, id="must be this one, is"),
        pytest.param({"ifGenerationMatch": "7"}, True, 412, id="must be this one, is not"),
        pytest.param({"ifGenerationMatch": "7"}, False, 412, id="must be this one, is nothing"),
        pytest.param({"ifGenerationNotMatch": "0"}, True, 200, id="must exist, does"),
        pytest.param({"ifGenerationNotMatch": "0"}, False, 412, id="must exist, does not"),
        pytest.param({"ifMetagenerationMatch": "1"}, True, 200, id="metageneration fits"),
        pytest.param({"ifMetagenerationMatch": "2"}, True, 412, id="metageneration differs"),
        pytest.param({"ifMetagenerationNotMatch": "1"}, True, 412, id="metageneration must differ"),
        pytest.param({"ifGenerationMatch": "zero"}, True, 400, id="not a number"),
    ],
)
def test_an_upload_obeys_its_preconditions(core, query, there, status):
    generation = upload(core, "x", b"old").json()["generation"] if there else ""
    asked = {key: value.format(generation=generation) for key, value in query.items()}
    assert upload(core, "x", b"new", **asked).status == status
    if there or status == 200:
        assert get(core, "x", alt="media").body == (b"new" if status == 200 else b"old")


def test_a_read_obeys_its_preconditions(core):
    generation = upload(core, "x").json()["generation"]
    assert get(core, "x", ifGenerationMatch=generation).status == 200
    assert get(core, "x", ifGenerationMatch="7").status == 412
    assert get(core, "x", ifGenerationNotMatch=generation).status == 304
    assert get(core, "x", generation="7").status == 404


def test_a_download_names_its_version_and_checksums(core):
    generation = upload(core, "x", b"hello").json()["generation"]
    headers = get(core, "x", alt="media").headers
    assert headers["X-Goog-Generation"] == generation
    assert headers["X-Goog-Stored-Content-Length"] == "5"
    assert headers["X-Goog-Hash"] == "crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg=="
    assert headers["ETag"]


@pytest.mark.parametrize(
    ("asked", "status", "body"),
    [
        ("bytes=2-4", 206, b"234"),
        ("bytes=7-", 206, b"789"),
        ("bytes=-2", 206, b"89"),
        ("bytes=5-99", 206, b"56789"),
        ("bytes=10-", 416, None),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_a_range_is_cut_out(core, asked, status, body):
    upload(core, "x", b"0123456789")
    request = HttpRequest(
        method="GET", path="/storage/v1/b/code/o/x", query={"alt": "media"}, headers={"range": asked}
    )
    answer = core.handle(request, NOW)
    assert answer.status == status
    assert body is None or answer.body == body


def test_pages_of_a_listing_join_without_gap_or_double_even_when_objects_come_between(core):
    for number in range(7):
        upload(core, f"cells/{number}")
    names, token = [], ""
    while True:
        query = {"prefix": "cells/", "maxResults": "3", "pageToken": token}
        page = core.handle(HttpRequest(method="GET", path="/storage/v1/b/code/o", query=query), NOW).json()
        names += [item["name"] for item in page["items"]]
        if (token := page.get("nextPageToken", "")) == "":
            break
        upload(core, "cells/0a")
    assert names == [f"cells/{number}" for number in range(7)]


def test_a_resumable_upload_tells_how_far_it_got(core: ObjectsCore):
    def call(method: str, query: dict[str, str], body: bytes = b"", **headers: str) -> HttpResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return core.handle(
            HttpRequest(
                method=method, path=UPLOAD, query=query, headers={"Host": "localhost:1", **sent}, body=body
            ),
            NOW,
        )

    begun = call("POST", {"uploadType": "resumable", "name": "x"})
    location = begun.headers["Location"]
    assert location.startswith(f"http://localhost:1{UPLOAD}?")
    piece = {"uploadType": "resumable", "upload_id": location.rpartition("=")[2]}

    assert call("PUT", piece, Content_Range="bytes */*").headers == {}
    first = call("PUT", piece, b"0123", Content_Range="bytes 0-3/*")
    assert (first.status, first.headers["Range"]) == (308, "bytes=0-3")
    assert call("PUT", piece, b"9", Content_Range="bytes 8-8/*").status == 400
    # The answer to the first piece was lost: the uploader sends it again with more.
    last = call("PUT", piece, b"234567", Content_Range="bytes 2-7/8")
    assert (last.status, get(core, "x", alt="media").body) == (200, b"01234567")
    assert call("PUT", piece, Content_Range="bytes */8").json() == last.json()
    assert call("PUT", {**piece, "upload_id": "another"}).status == 404


def test_a_write_once_resumable_upload_is_refused_before_its_body_is_sent_and_after(core: ObjectsCore):
    def begin(name: str) -> HttpResponse:
        query = {"uploadType": "resumable", "name": name, "ifGenerationMatch": "0"}
        return core.handle(HttpRequest(method="POST", path=UPLOAD, query=query), NOW)

    upload(core, "there", b"first")
    assert begin("there").status == 412

    begun = begin("raced for")
    upload(core, "raced for", b"first")
    query = {"uploadType": "resumable", "upload_id": begun.headers["X-GUploader-UploadID"]}
    assert core.handle(HttpRequest(method="PUT", path=UPLOAD, query=query, body=b"2"), NOW).status == 412
    assert get(core, "raced%20for", alt="media").body == b"first"


def test_a_resumable_upload_to_googles_name_goes_on_over_tls(core):
    headers = {"Host": "storage.googleapis.com"}
    query = {"uploadType": "resumable", "name": "x"}
    answer = core.handle(HttpRequest(method="POST", path=UPLOAD, query=query, headers=headers), NOW)
    assert answer.headers["Location"].startswith("https://storage.googleapis.com/upload/")


@pytest.mark.parametrize(
    "query",
    [
        {"uploadType": "media", "name": ""},
        {"uploadType": "media", "name": "a\nb"},
        {"uploadType": "media", "name": "x" * 1025},
        {"uploadType": "carrier pigeon", "name": "x"},
        {"uploadType": "multipart", "name": "x"},
    ],
)
def test_a_malformed_upload_is_refused(core, query):
    assert core.handle(HttpRequest(method="POST", path=UPLOAD, query=query), NOW).status == 400


@pytest.mark.parametrize(
    ("applied", "there"), [pytest.param(False, 404, id="lost"), pytest.param(True, 200, id="applied")]
)
def test_a_fault_replaces_the_answer_and_maybe_the_call(applied, there):
    seen = []

    def faults(method_id: str, _request: HttpRequest) -> Fault | None:
        seen.append(method_id)
        return Fault(answer=DROPPED, applied=applied) if method_id == "storage.objects.insert" else None

    core = ObjectsCore(faults=faults)
    core.make_bucket("code", NOW)
    assert upload(core, "x") == DROPPED
    assert get(core, "x").status == there
    assert seen == ["storage.objects.insert", "storage.objects.get"]


def test_an_upload_that_was_refused_announces_nothing():
    notices = []
    core = ObjectsCore(on_finalize=lambda *message: notices.append(message))
    core.make_bucket("code", NOW, [Notification(topic="sf-marker")])
    upload(core, "x", ifGenerationMatch="0")
    upload(core, "x", ifGenerationMatch="0")
    upload(core, "x")
    first, second = [attributes for _topic, _body, attributes, _now in notices]
    assert "overwroteGeneration" not in first
    assert second["overwroteGeneration"] == first["objectGeneration"]


def test_making_a_bucket_again_keeps_its_objects(core):
    upload(core, "x")
    core.make_bucket("code", NOW, [Notification(topic="sf-marker")])
    assert get(core, "x").status == 200


def test_calls_are_counted_by_method_whatever_their_answer(core):
    upload(core, "x")
    get(core, "x")
    get(core, "y")
    core.handle(HttpRequest(method="GET", path="/storage/v1/b/code/o"), NOW)
    core.handle(HttpRequest(method="DELETE", path="/storage/v1/b/code/o/x"), NOW)
    assert core.counts() == {
        "storage.objects.insert": 1,
        "storage.objects.get": 2,
        "storage.objects.list": 1,
        "storage.objects.delete": 1,
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("PATCH", "/storage/v1/b/code/o/x"),
        ("POST", "/storage/v1/b/code/o"),
        ("GET", "/compute/v1"),
    ],
)
def test_what_the_api_does_not_have_is_not_found(core, method, path):
    assert core.handle(HttpRequest(method=method, path=path), NOW).status == 404
    assert core.counts() == {}


def test_a_body_cut_short_by_its_range_is_refused(core):
    begun = core.handle(
        HttpRequest(method="POST", path=UPLOAD, query={"uploadType": "resumable", "name": "x"}), NOW
    )
    query = {"uploadType": "resumable", "upload_id": begun.headers["X-GUploader-UploadID"]}
    request = HttpRequest(
        method="PUT", path=UPLOAD, query=query, headers={"Content-Range": "bytes 0-9/10"}, body=b"short"
    )
    assert core.handle(request, NOW).status == 400
