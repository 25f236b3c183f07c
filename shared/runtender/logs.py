"""Structured logs: one JSON line per record on standard output, in the shape that Cloud Logging understands.

What a record carries in `extra` becomes a field. Values whose name says that they are secret are not written.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_SECRET = ("authorization", "password", "secret", "credential", "access_token")
_MOST_TEXT = 4000


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object with `severity`, `message`, `time` and the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "severity": record.levelname,
            "message": record.getMessage()[:_MOST_TEXT],
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
        }
        for key, value in record.__dict__.items():
            if key not in _STANDARD:
                line[key] = "[redacted]" if any(word in key.lower() for word in _SECRET) else _plain(value)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-_MOST_TEXT:]
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: int = logging.INFO) -> None:
    """Send runtender's records to standard output as JSON; safe to call more than once."""
    logger = logging.getLogger("runtender")
    if any(isinstance(handler.formatter, JsonFormatter) for handler in logger.handlers):
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_MOST_TEXT]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value[:50]]
    return value
