"""Answering downloads: the body, or a range of it, with the headers that clients check it by."""

from __future__ import annotations

import re
from collections.abc import Mapping

from runtender.local.http import HttpResponse
from runtender.local.objects.answers import range_not_satisfiable
from runtender.local.objects.versions import ObjectVersion

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")
_HEADER_OF = {
    "cacheControl": "Cache-Control",
    "contentDisposition": "Content-Disposition",
    "contentEncoding": "Content-Encoding",
    "contentLanguage": "Content-Language",
}


def media_response(version: ObjectVersion, body: bytes, asked: Mapping[str, str]) -> HttpResponse:
    """Return the download of a version; `asked` are the request's headers, of which `Range` counts."""
    headers = {
        "Content-Type": version.content_type,
        "ETag": version.etag,
        "X-Goog-Generation": str(version.generation),
        "X-Goog-Metageneration": str(version.metageneration),
        "X-Goog-Stored-Content-Length": str(version.size),
        "X-Goog-Stored-Content-Encoding": str(version.given.get("contentEncoding", "identity")),
        "X-Goog-Hash": f"crc32c={version.crc32c},md5={version.md5}",
        **{header: str(version.given[key]) for key, header in _HEADER_OF.items() if key in version.given},
    }
    span = _span(asked.get("Range", ""), len(body))
    if span is None:
        return HttpResponse(status=200, headers=headers, body=body)
    first, end = span
    headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(body)}"
    return HttpResponse(status=206, headers=headers, body=body[first:end])


def _span(text: str, size: int) -> tuple[int, int] | None:
    """Return first and end (exclusive) of one range; None where the whole body is to be sent."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    if start >= end:
        raise range_not_satisfiable(size)
    return start, end
