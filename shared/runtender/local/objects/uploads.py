"""The three ways a body arrives: plain, with its metadata in one multipart body, or piece by piece."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from runtender.local.http import HttpRequest
from runtender.local.objects.answers import invalid
from runtender.local.objects.conditions import Preconditions
from runtender.local.objects.versions import SETTABLE, ObjectVersion, crc32c_of, md5_of

DEFAULT_CONTENT_TYPE = "application/octet-stream"

_MAX_NAME_BYTES = 1024
_BOUNDARY = re.compile(r'boundary=(?:"([^"]+)"|([^;\s]+))')
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")
_BLANK_LINE = b"\r\n\r\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """An object about to be stored. `claimed` are the checksums the uploader computed, by resource key."""

    name: str
    content_type: str
    preconditions: Preconditions
    given: Mapping[str, Any] = field(default_factory=dict)
    claimed: Mapping[str, str] = field(default_factory=dict)

    def version(self, bucket: str, generation: int, body: bytes, now: datetime) -> ObjectVersion:
        """Return the version that this upload of `body` makes."""
        return ObjectVersion(
            bucket=bucket,
            name=self.name,
            generation=generation,
            created_at=now,
            size=len(body),
            content_type=self.content_type,
            crc32c=crc32c_of(body),
            md5=md5_of(body),
            given=self.given,
        )

    def check_body(self, body: bytes) -> None:
        """Refuse a body that is not what the uploader meant to send."""
        computed = {"crc32c": crc32c_of, "md5Hash": md5_of}
        for key, claim in self.claimed.items():
            if (found := computed[key](body)) != claim:
                raise invalid(f"Provided {key} {claim!r} doesn't match calculated {key} {found!r}.")


@dataclass(kw_only=True, slots=True)
class Session:
    """A resumable upload under way. `resource` is the stored object's, once it is complete and taken."""

    id: str
    upload: Upload
    received: bytearray = field(default_factory=bytearray)
    complete: bool = False
    resource: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Where one piece belongs: `start` is None where the call only asks. `total` is the final size."""

    start: int | None
    total: int | None


def plain_upload(request: HttpRequest) -> Upload:
    """Read what a media upload says of its object besides the body."""
    return _upload(request, {}, request.headers.get("Content-Type", ""))


def resumable_upload(request: HttpRequest) -> Upload:
    """Read what the first call of a resumable upload says of its object."""
    return _upload(request, metadata_of(request.body), request.headers.get("X-Upload-Content-Type", ""))


def multipart_upload(request: HttpRequest) -> tuple[Upload, bytes]:
    """Take a multipart upload apart into what it says of its object, and the body."""
    parts = _parts(request)
    if len(parts) != 2:
        raise invalid(f"Expected two parts, metadata and media, not {len(parts)}.")
    (_, metadata), (media_head, media) = parts
    return _upload(request, metadata_of(metadata), _content_type(media_head)), media


def chunk_of(request: HttpRequest) -> Chunk:
    """Read where the piece in `request` belongs; without a range it is the whole body."""
    text = request.headers.get("Content-Range")
    if text is None:
        return Chunk(start=0, total=len(request.body))
    match = _CONTENT_RANGE.fullmatch(text.strip())
    if match is None:
        raise invalid(f"Invalid Content-Range: {text!r}.")
    first, last, total = match.groups()
    if first is not None and int(last) - int(first) + 1 != len(request.body):
        raise invalid(f"Content-Range {text!r} does not fit a body of {len(request.body)} bytes.")
    return Chunk(start=None if first is None else int(first), total=None if total == "*" else int(total))


def _upload(request: HttpRequest, metadata: Mapping[str, Any], media_type: str) -> Upload:
    given = {key: metadata[key] for key in SETTABLE if key in metadata}
    if encoding := request.query.get("contentEncoding"):
        given["contentEncoding"] = encoding
    claimed = {key: metadata[key] for key in ("crc32c", "md5Hash") if metadata.get(key)}
    return Upload(
        name=_object_name(request.query.get("name") or metadata.get("name")),
        content_type=str(metadata.get("contentType") or media_type or DEFAULT_CONTENT_TYPE),
        preconditions=Preconditions.of(request.query),
        given=given,
        claimed={**claimed, **header_hashes(request)},
    )


def _object_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise invalid("Required parameter: name")
    if len(name.encode()) > _MAX_NAME_BYTES or "\n" in name or "\r" in name:
        raise invalid(f"Disallowed object name: at most {_MAX_NAME_BYTES} bytes and no line breaks.")
    return name


def header_hashes(request: HttpRequest) -> dict[str, str]:
    """Return the checksums that a request's headers claim, by resource key."""
    keys = {"crc32c": "crc32c", "md5": "md5Hash"}
    pairs = (part.strip().partition("=") for part in request.headers.get("X-Goog-Hash", "").split(","))
    return {keys[kind]: value for kind, _, value in pairs if kind in keys}


def metadata_of(body: bytes) -> Mapping[str, Any]:
    """Read a resource that a caller sent; an empty body is an empty resource."""
    try:
        metadata = json.loads(body) if body.strip() else {}
    except ValueError as error:
        raise invalid("The resource is not JSON.") from error
    if not isinstance(metadata, dict):
        raise invalid("The resource is not a JSON object.")
    return metadata


def _parts(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    """Split a multipart body into heads and bodies. The media may hold anything but the boundary itself."""
    match = _BOUNDARY.search(request.headers.get("Content-Type", ""))
    if match is None:
        raise invalid("A multipart upload needs a boundary in its Content-Type.")
    delimiter = b"\r\n--" + (match[1] or match[2]).encode()
    pieces = (b"\r\n" + request.body).split(delimiter)
    parts = []
    # The preamble comes before the first delimiter, `--` after the last one.
    for piece in pieces[1:-1]:
        head, blank, body = piece.partition(_BLANK_LINE)
        if not blank:
            raise invalid("A part of the multipart body has no blank line after its head.")
        parts.append((head, body))
    return parts


def _content_type(head: bytes) -> str:
    for line in head.decode("latin-1").splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-type":
            return value.strip()
    return ""
