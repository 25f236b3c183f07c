"""Cloud Storage over its JSON API.

Three calls of the API are all the plane needs, so it does without the official client: that costs an entry point a
third of its cold start, and has no say over single answers such as a 403 that means "it is there already".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from runtender.errors import Rejected, Retryable
from runtender.gcp.http import PASSING, HttpCaller, Reply
from runtender.gcp.session import HttpSession
from runtender.ports import Clock, ObjectPage, StoredObject

STORAGE_URL = "https://storage.googleapis.com"

METHODS = ("storage.objects.get", "storage.objects.insert", "storage.objects.list")
"""Every API method that is called here: what the plane needs permission for."""

# Reads, and writes whose repeat changes nothing: 429 is a bucket asking for a slower pace, not a spent budget.
_REPEATED = PASSING | {429}
_FACTS = "name,size,generation,timeCreated"
_PAGE = 1000
# A page may come back short or empty; a listing that does not end has to.
_MAX_PAGES = 200
_WORDS = 500
# What stands in the 403 for a worker that may create objects but would have to delete one to overwrite it.
_OVERWRITE_DENIED = b"storage.objects.delete"


class StorageObjects:
    """The Objects port over a session. `base_url` is another one than Google's in the local cloud."""

    def __init__(
        self,
        session: HttpSession,
        base_url: str = STORAGE_URL,
        *,
        clock: Clock,
        timeout: timedelta = timedelta(seconds=30),
    ) -> None:
        self._caller = HttpCaller(session, clock, timeout)
        self._base_url = base_url.rstrip("/")
        self._clock = clock

    def stat(self, bucket: str, name: str) -> StoredObject | None:
        reply = self._get(_object_path(bucket, name), {"fields": _FACTS})
        if reply.status == 404:
            return None
        if reply.status != 200:
            raise self._failure(reply, f"gs://{bucket}/{name}", "read")
        return _stored_object(bucket, reply.json())

    def read(self, bucket: str, name: str, *, limit: int) -> bytes | None:
        reply = self._get(_object_path(bucket, name), {"alt": "media"}, {"Range": f"bytes=0-{limit - 1}"})
        match reply.status:
            case 200 | 206:
                return reply.content[:limit]
            case 404:
                return None
            case 416:
                # An empty object has no first byte to begin a range at.
                return b""
            case _:
                raise self._failure(reply, f"gs://{bucket}/{name}", "read")

    def list(self, bucket: str, prefix: str, *, limit: int) -> ObjectPage:
        found: list[StoredObject] = []
        token: str | None = None
        for _ in range(_MAX_PAGES):
            page = self._page(bucket, prefix, min(_PAGE, limit - len(found)), token)
            found.extend(_stored_object(bucket, item) for item in page.get("items", ()))
            token = page.get("nextPageToken")
            if token is None:
                return ObjectPage(objects=tuple(found))
            if len(found) >= limit:
                break
        return ObjectPage(objects=tuple(found), complete=False)

    def create(self, bucket: str, name: str, body: bytes, *, content_type: str = "application/json") -> bool:
        """Write an object that must not exist; False when it does.

        The upload is repeated when no answer comes, so a False can also be the echo of our own first try: whoever
        needs to know reads the object.
        """
        reply = self._upload(bucket, name, body, content_type, {"ifGenerationMatch": "0"})
        match reply.status:
            case 200:
                return True
            case 412:
                return False
            case 403 if _OVERWRITE_DENIED in reply.content:
                return False
            case _:
                raise self._failure(reply, f"gs://{bucket}/{name}", "write")

    def put(self, bucket: str, name: str, body: bytes, *, content_type: str = "application/json") -> None:
        reply = self._upload(bucket, name, body, content_type, {})
        if reply.status != 200:
            raise self._failure(reply, f"gs://{bucket}/{name}", "write")

    def _page(self, bucket: str, prefix: str, size: int, token: str | None) -> Mapping[str, Any]:
        query = {"prefix": prefix, "maxResults": str(size), "fields": f"items({_FACTS}),nextPageToken"}
        if token is not None:
            query["pageToken"] = token
        reply = self._get(f"/storage/v1/b/{_segment(bucket)}/o", query)
        if reply.status != 200:
            raise self._failure(reply, f"gs://{bucket}/{prefix}", "list")
        return reply.json()

    def _get(self, path: str, query: Mapping[str, str], headers: Mapping[str, str] | None = None) -> Reply:
        return self._caller.call(
            "GET", self._base_url + path, params=query, headers=headers, repeat_on=_REPEATED
        )

    def _upload(
        self, bucket: str, name: str, body: bytes, content_type: str, query: Mapping[str, str]
    ) -> Reply:
        return self._caller.call(
            "POST",
            f"{self._base_url}/upload/storage/v1/b/{_segment(bucket)}/o",
            params={"uploadType": "media", "name": name, "fields": "generation", **query},
            headers={"Content-Type": content_type},
            body=body,
            repeat_on=_REPEATED,
        )

    def _failure(self, reply: Reply, uri: str, verb: str) -> Rejected | Retryable:
        words = f"Cloud Storage answered {reply.status or 'nothing'}: {reply.text(_WORDS)}"
        match reply.status:
            case 401 | 403:
                return Rejected.because(
                    uri, f"may not {verb} it; {words}", f"grant this service account the right to {verb} it"
                )
            case 404:
                return Rejected.because(uri, f"there is no such bucket; {words}", "name an existing bucket")
            case _:
                after = reply.retry_after_s(self._clock.now())
                return Retryable(f"cannot {verb} {uri} now; {words}", after=after)


def _segment(name: str) -> str:
    return quote(name, safe="")


def _object_path(bucket: str, name: str) -> str:
    return f"/storage/v1/b/{_segment(bucket)}/o/{_segment(name)}"


def _stored_object(bucket: str, facts: Mapping[str, Any]) -> StoredObject:
    # 64-bit numbers are strings in Google's JSON.
    return StoredObject(
        bucket=bucket,
        name=facts["name"],
        size=int(facts["size"]),
        generation=int(facts["generation"]),
        created_at=datetime.fromisoformat(facts["timeCreated"]),
    )
