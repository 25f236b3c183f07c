"""Pub/Sub notifications about finalized objects, in the shape `JSON_API_V1`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runtender.local.objects.versions import ObjectVersion, api_time


def notice_attributes(version: ObjectVersion, number: int, replaced: ObjectVersion | None) -> dict[str, str]:
    """Return the attributes of the message that notification config `number` of the bucket sends."""
    attributes = {
        "notificationConfig": f"projects/_/buckets/{version.bucket}/notificationConfigs/{number}",
        "eventType": "OBJECT_FINALIZE",
        "payloadFormat": "JSON_API_V1",
        "bucketId": version.bucket,
        "objectId": version.name,
        "objectGeneration": str(version.generation),
        "eventTime": api_time(version.created_at),
    }
    if replaced is not None:
        attributes["overwroteGeneration"] = str(replaced.generation)
    return attributes


def notice_body(resource: Mapping[str, Any]) -> bytes:
    """Return the message's body: the resource of the finalized object."""
    return json.dumps(resource).encode()
