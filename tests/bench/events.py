"""Events as they arrive at an entry point: the bodies of Pub/Sub's push requests."""

from __future__ import annotations

import base64
import json
from datetime import datetime


def marker_event(name: str, at: datetime) -> bytes:
    """Return the push by which Cloud Storage tells of an object."""
    attributes = {"eventType": "OBJECT_FINALIZE", "bucketId": "code", "objectId": name}
    return push_event(b"", at, **attributes)


def push_event(body: bytes, at: datetime, **attributes: str) -> bytes:
    """Return the body of a Pub/Sub push request."""
    message = {
        "data": base64.b64encode(body).decode(),
        "attributes": attributes,
        "messageId": f"m-{at.timestamp():.0f}",
        "publishTime": at.isoformat(),
    }
    return json.dumps({"message": message, "subscription": "s"}).encode()
