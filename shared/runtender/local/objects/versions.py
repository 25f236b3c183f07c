"""Buckets, and the versions of objects in them, with the resources that the API shows of both."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import google_crc32c

# Metadata that a caller may set on an upload and reads back unchanged.
SETTABLE = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
    "customTime",
    "metadata",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Notification:
    """Tell `topic` about every object that is finalized below `prefix` of a bucket."""

    topic: str
    prefix: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectVersion:
    """One generation of an object, without its body. `given` holds the metadata the uploader set."""

    bucket: str
    name: str
    generation: int
    created_at: datetime
    size: int
    content_type: str
    crc32c: str
    md5: str
    given: Mapping[str, Any] = field(default_factory=dict)

    # Nothing here changes metadata alone, so every version keeps its first metageneration.
    metageneration: int = 1

    @property
    def etag(self) -> str:
        """An opaque name of this very version."""
        return base64.b64encode(f"{self.generation}/{self.metageneration}".encode()).decode()

    def resource(self, address: str) -> dict[str, Any]:
        """Return the object resource of the JSON API, with links to the service at `address`."""
        stored_at = api_time(self.created_at)
        link = f"/b/{self.bucket}/o/{quote(self.name, safe='')}"
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": f"{address}/storage/v1{link}",
            "mediaLink": f"{address}/download/storage/v1{link}?generation={self.generation}&alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "contentType": self.content_type,
            "storageClass": "STANDARD",
            "size": str(self.size),
            "md5Hash": self.md5,
            "crc32c": self.crc32c,
            "etag": self.etag,
            "timeCreated": stored_at,
            "updated": stored_at,
            "timeStorageClassUpdated": stored_at,
            "timeFinalized": stored_at,
            **self.given,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """A bucket and the live version of every object in it, by name."""

    name: str
    created_at: datetime
    notifications: tuple[Notification, ...] = ()
    live: dict[str, ObjectVersion] = field(default_factory=dict)

    def resource(self) -> dict[str, Any]:
        """Return the bucket resource of the JSON API."""
        created_at = api_time(self.created_at)
        return {
            "kind": "storage#bucket",
            "id": self.name,
            "name": self.name,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{self.name}",
            "metageneration": "1",
            "location": "US",
            "locationType": "multi-region",
            "storageClass": "STANDARD",
            "timeCreated": created_at,
            "updated": created_at,
            "etag": "CAE=",
        }


def api_time(moment: datetime) -> str:
    """Return a time as the API writes it: UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def crc32c_of(body: bytes) -> str:
    """Return the checksum as the API shows it: base64 of the big-endian value."""
    return base64.b64encode(google_crc32c.value(body).to_bytes(4)).decode()


def md5_of(body: bytes) -> str:
    """Return the MD5 as the API shows it, in base64."""
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
