"""`gs://` URIs, as commands take and print them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runtender.errors import Rejected

_URI = re.compile(r"gs://(?P<bucket>[^/]+)/(?P<name>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ObjectUri:
    """Where an object lies."""

    bucket: str
    name: str

    def __str__(self) -> str:
        return f"gs://{self.bucket}/{self.name}"


def parse_uri(text: str, field: str) -> ObjectUri:
    """Take a `gs://bucket/object` apart; raises `Rejected` naming `field` for anything else."""
    match = _URI.fullmatch(text)
    if match is None:
        raise Rejected.because(field, f"{text!r} is not a Cloud Storage URI", "write gs://bucket/object")
    return ObjectUri(match["bucket"], match["name"])
