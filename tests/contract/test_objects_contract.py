"""The object server as its real clients see it: the official Python client, and curl as a worker runs it."""

from __future__ import annotations

import json
import subprocess
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

import pytest
from google.api_core.exceptions import BadRequest, Conflict, Forbidden, NotFound, PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from runtender.local.http import LocalAuthority, utc_now
from runtender.local.objects import (
    Bodies,
    DiskBodies,
    MemoryBodies,
    Notification,
    ObjectsCore,
    ObjectServer,
    OverwriteAnswer,
)

BUCKET = "code"
WORKER = "Authorization: Bearer local-worker-sf-r-1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return LocalAuthority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(params=["in memory", "on disk"])
def bodies(request, tmp_path) -> Bodies:
    return MemoryBodies() if request.param == "in memory" else DiskBodies(tmp_path / "objects")


@pytest.fixture
def notices():
    return []


@pytest.fixture
def core(bodies, notices):
    core = ObjectsCore(bodies=bodies, on_finalize=lambda *message: notices.append(message))
    core.make_bucket(BUCKET, utc_now(), [Notification(topic="sf-marker", prefix="runs/status/")])
    return core


@pytest.fixture
def server(core, authority):
    with ObjectServer(core, authority=authority) as server:
        yield server


@pytest.fixture
def client(server):
    client = storage.Client(
        project="demo", credentials=AnonymousCredentials(), client_options={"api_endpoint": server.url}
    )
    yield client
    client.close()


@pytest.fixture
def bucket(client):
    return client.bucket(BUCKET)


@pytest.fixture
def curl(server, authority):
    """Run curl against the Google name of the service; return status and body."""

    def run(method: str, target: str, *more: str, body: Path | None = None) -> tuple[int, bytes]:
        command = ["curl", "-sS", "--max-time", "20", "--noproxy", "*", "--cacert", str(authority.ca_file)]
        command += ["--connect-to", f"storage.googleapis.com:443:127.0.0.1:{server.tls_port}"]
        command += ["-X", method, "-w", "\n%{http_code}", *more]
        command += ["--data-binary", f"@{body}"] if body else []
        done = subprocess.run(
            [*command, f"https://storage.googleapis.com{target}"], check=True, capture_output=True, timeout=30
        )
        answer, _, status = done.stdout.rpartition(b"\n")
        return int(status), answer

    return run


def media_target(name: str, **query: object) -> str:
    more = "".join(f"&{key}={value}" for key, value in query.items())
    return f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(name, safe='')}{more}"


def object_target(name: str, query: str = "") -> str:
    return f"/storage/v1/b/{BUCKET}/o/{quote(name, safe='')}{query}"


def test_what_was_uploaded_is_read_back(bucket):
    body = b"\r\n--not a boundary\r\n\x00\xff" * 1000
    blob = bucket.blob("runs/a b/ä#?.bin")
    blob.metadata = {"nonce": "n1"}
    blob.upload_from_string(body, content_type="application/x-thing")

    again = bucket.get_blob("runs/a b/ä#?.bin")
    assert again.download_as_bytes() == body
    assert (again.size, again.content_type, again.metadata) == (
        len(body),
        "application/x-thing",
        {"nonce": "n1"},
    )
    assert again.generation == blob.generation
    assert again.time_created == again.updated


def test_an_empty_object_is_an_object(bucket):
    bucket.blob("empty").upload_from_string(b"")
    assert bucket.blob("empty").download_as_bytes() == b""


def test_a_large_body_arrives_in_pieces(bucket, server):
    body = bytes(range(256)) * 4096 + b"the end"
    blob = bucket.blob("large", chunk_size=256 * 1024)
    with blob.open("wb") as stream:
        stream.write(body)
    assert bucket.blob("large").download_as_bytes() == body
    assert server.counts()["storage.objects.insert"] > len(body) // (256 * 1024)


def test_a_large_body_arrives_in_one_resumable_piece(bucket, tmp_path):
    source = tmp_path / "panel"
    source.write_bytes(b"0123456789" * 1_000_000)
    bucket.blob("panel").upload_from_filename(str(source))
    target = tmp_path / "copy"
    bucket.blob("panel").download_to_filename(str(target))
    assert target.read_bytes() == source.read_bytes()


def test_part_of_a_body_can_be_read(bucket):
    bucket.blob("digits").upload_from_string(b"0123456789")
    assert bucket.blob("digits").download_as_bytes(start=2, end=4) == b"234"
    assert bucket.blob("digits").download_as_bytes(start=-3) == b"789"


def test_what_is_not_there_is_not_found(client, bucket):
    assert not bucket.blob("nothing").exists()
    assert client.lookup_bucket("nowhere") is None
    with pytest.raises(NotFound):
        bucket.blob("nothing").download_as_bytes()
    with pytest.raises(NotFound):
        bucket.blob("nothing").delete()
    with pytest.raises(NotFound):
        client.bucket("nowhere").blob("x").upload_from_string(b"x")


def test_a_write_once_object_is_written_once(bucket):
    bucket.blob("marker").upload_from_string(b"first", if_generation_match=0)
    with pytest.raises(PreconditionFailed):
        bucket.blob("marker").upload_from_string(b"second", if_generation_match=0)
    assert bucket.blob("marker").download_as_bytes() == b"first"


def test_a_write_once_object_in_pieces_is_written_once(bucket):
    blob = bucket.blob("marker", chunk_size=256 * 1024)
    blob.upload_from_file(BytesIO(b"first"), if_generation_match=0)
    with pytest.raises(PreconditionFailed):
        blob.upload_from_file(BytesIO(b"second"), if_generation_match=0)
    assert bucket.blob("marker").download_as_bytes() == b"first"


def test_a_generation_can_be_swapped_only_once(bucket):
    blob = bucket.blob("pointer")
    blob.upload_from_string(b"1")
    first = blob.generation
    bucket.blob("pointer").upload_from_string(b"2", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("pointer").upload_from_string(b"3", if_generation_match=first)
    with pytest.raises(PreconditionFailed):
        bucket.blob("pointer").delete(if_generation_match=first)
    with pytest.raises(NotFound):
        bucket.blob("pointer", generation=first).download_as_bytes()


def test_a_damaged_body_is_refused(bucket):
    blob = bucket.blob("damaged")
    blob.crc32c = "AAAAAA=="
    with pytest.raises(BadRequest, match="crc32c"):
        blob.upload_from_string(b"x", checksum=None)
    assert not bucket.blob("damaged").exists()


def test_a_deleted_object_is_gone(bucket):
    bucket.blob("x").upload_from_string(b"x")
    bucket.blob("x").delete()
    assert not bucket.blob("x").exists()
    bucket.blob("x").upload_from_string(b"y", if_generation_match=0)


def test_listing_goes_by_prefix_page_and_folder(client, bucket):
    for name in ("cells/1/a", "cells/1/b", "cells/2/c", "cells/d", "logs/e"):
        bucket.blob(name).upload_from_string(b"x")

    def names(**query):
        return [blob.name for blob in client.list_blobs(BUCKET, **query)]

    assert names(prefix="cells/", page_size=2) == ["cells/1/a", "cells/1/b", "cells/2/c", "cells/d"]
    assert names(prefix="cells/", start_offset="cells/2") == ["cells/2/c", "cells/d"]
    assert names(prefix="cells/", end_offset="cells/1/b") == ["cells/1/a"]
    assert names(max_results=1) == ["cells/1/a"]
    assert names(prefix="none/") == []
    folders = client.list_blobs(BUCKET, prefix="cells/", delimiter="/", page_size=1)
    assert [blob.name for blob in folders] == ["cells/d"]
    assert folders.prefixes == {"cells/1/", "cells/2/"}


def test_a_bucket_is_made_once(client):
    client.create_bucket("fresh")
    client.bucket("fresh").blob("x").upload_from_string(b"x")
    with pytest.raises(Conflict):
        client.create_bucket("fresh")
    assert client.get_bucket("fresh").name == "fresh"


def test_curl_writes_a_marker_once(curl, bucket, tmp_path):
    marker = tmp_path / "marker.json"
    marker.write_text('{"status": "RUNNING"}')
    target = media_target("runs/status/j/n/0.started.json", ifGenerationMatch=0)

    status, answer = curl("POST", target, "-H", WORKER, "-H", "Content-Type: application/json", body=marker)
    assert status == 200
    assert json.loads(answer)["name"] == "runs/status/j/n/0.started.json"
    assert bucket.get_blob("runs/status/j/n/0.started.json").content_type == "application/json"

    status, answer = curl("POST", target, "-H", WORKER, body=marker)
    assert status == 412
    assert json.loads(answer)["error"]["errors"][0]["reason"] == "conditionNotMet"


def test_curl_reads_bodies_and_facts(curl, bucket):
    bucket.blob("runs/x.txt").upload_from_string(b"hello")
    status, body = curl("GET", object_target("runs/x.txt", "?alt=media"))
    assert (status, body) == (200, b"hello")
    status, body = curl("GET", "/download" + object_target("runs/x.txt", "?alt=media"), "-r", "1-3")
    assert (status, body) == (206, b"ell")
    status, body = curl("GET", object_target("runs/x.txt"))
    assert (status, json.loads(body)["size"]) == (200, "5")
    status, body = curl("GET", object_target("runs/y.txt"))
    assert status == 404
    assert json.loads(body)["error"]["message"] == f"No such object: {BUCKET}/runs/y.txt"


def test_curl_streams_a_body_of_unknown_length(curl, bucket, tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"line\n" * 400_000)
    status, _ = curl("POST", media_target("runs/logs/x"), "-T", str(log), "-H", "Transfer-Encoding: chunked")
    assert status == 200
    assert bucket.blob("runs/logs/x").download_as_bytes() == log.read_bytes()


@pytest.mark.parametrize(
    ("answer", "status"),
    [(OverwriteAnswer.PRECONDITION_FAILED, 412), (OverwriteAnswer.PERMISSION_DENIED, 403)],
)
def test_a_worker_that_writes_twice_is_told_in_either_of_googles_ways(authority, tmp_path, answer, status):
    core = ObjectsCore(overwrite_answer=answer)
    core.make_bucket(BUCKET, utc_now())
    marker = tmp_path / "marker"
    marker.write_text("{}")
    with ObjectServer(core) as server:
        target = server.url + media_target("m", ifGenerationMatch=0)
        command = ["curl", "-sS", "--noproxy", "*", "-w", "%{http_code}", "-o", str(tmp_path / "answer")]
        command += ["-H", WORKER, "--data-binary", f"@{marker}", target]
        codes = [int(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(2)]
    assert codes == [200, status]
    if status == 403:
        assert "storage.objects.delete" in (tmp_path / "answer").read_text()


def test_a_worker_may_neither_delete_nor_overwrite(curl, bucket, tmp_path):
    body = tmp_path / "body"
    body.write_text("new")
    bucket.blob("x").upload_from_string(b"old")
    assert curl("DELETE", object_target("x"), "-H", WORKER)[0] == 403
    assert curl("POST", media_target("x"), "-H", WORKER, body=body)[0] == 403
    assert bucket.blob("x").download_as_bytes() == b"old"
    bucket.blob("x").delete()


def test_only_objects_below_the_prefix_are_announced(bucket, notices):
    bucket.blob("runs/logs/j/0.log").upload_from_string(b"log")
    blob = bucket.blob("runs/status/j/n/0.terminal.json")
    blob.upload_from_string(b"{}")
    [(topic, body, attributes, _now)] = notices
    assert topic == "sf-marker"
    assert json.loads(body)["name"] == blob.name
    assert attributes["eventType"] == "OBJECT_FINALIZE"
    assert attributes["payloadFormat"] == "JSON_API_V1"
    assert (attributes["bucketId"], attributes["objectId"]) == (BUCKET, blob.name)
    assert attributes["objectGeneration"] == str(blob.generation)


def test_the_official_client_reads_a_refusal_as_forbidden(server):
    class WorkerToken(AnonymousCredentials):
        def before_request(self, request, method, url, headers):
            headers["Authorization"] = WORKER.removeprefix("Authorization: ")

    worker = storage.Client(
        project="demo", credentials=WorkerToken(), client_options={"api_endpoint": server.url}
    )
    worker.bucket(BUCKET).blob("x").upload_from_string(b"1")
    with pytest.raises(Forbidden, match=r"storage\.objects\.delete"):
        worker.bucket(BUCKET).blob("x").upload_from_string(b"2")
    worker.close()
