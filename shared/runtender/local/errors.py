"""What can go wrong with the local cloud itself, apart from what it simulates."""

from __future__ import annotations

from runtender.errors import RuntenderError


class LocalCloudError(RuntenderError):
    """The local cloud could not be started, or is not there; the message says what to do."""
