"""Structured logs: one JSON line per record on standard output, in the shape that Cloud Logging understands.

What a record carries in `extra` becomes a field, and so does what `about` says of all records within it: the event, the run
and the job. Secrets are not written: neither values whose name says that they are secret, nor tokens in any text.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from runtender.redaction import REDACTED, is_secret_field, redacted

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_TRACE = re.compile(r"[0-9a-f]{32}")
_MOST_TEXT = 4000
_MOST_ITEMS = 50

_NO_FACTS: Mapping[str, str] = {}
_FACTS: ContextVar[Mapping[str, str]] = ContextVar("runtender_log_facts", default=_NO_FACTS)


@contextmanager
def about(**facts: str) -> Iterator[None]:
    """Add fields to every record that is logged within; a thread inherits them by `contextvars.copy_context`."""
    token = _FACTS.set({**_FACTS.get(), **{name: fact for name, fact in facts.items() if fact}})
    try:
        yield
    finally:
        _FACTS.reset(token)


class JsonFormatter(logging.Formatter):
    """Renders a record as one JSON object with `severity`, `message`, `time` and all its fields.

    With a `project`, a record that knows its trace is shown by Cloud Logging beside the request that it belongs to.
    """

    def __init__(self, project: str = "") -> None:
        super().__init__()
        self._project = project

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "severity": record.levelname,
            "message": _text(record.getMessage()),
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "logger": record.name,
        }
        own = {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        line |= _fields({**_FACTS.get(), **own})
        trace_id = str(line.get("trace_id", ""))
        if self._project and _TRACE.fullmatch(trace_id):
            line["logging.googleapis.com/trace"] = f"projects/{self._project}/traces/{trace_id}"
        if record.exc_info:
            line["exception"] = _text(self.formatException(record.exc_info)[-_MOST_TEXT:])
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up(level: int = logging.INFO, *, project: str = "") -> None:
    """Send runtender's records to standard output as JSON; safe to call more than once."""
    logger = logging.getLogger("runtender")
    if any(isinstance(handler.formatter, JsonFormatter) for handler in logger.handlers):
        return
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter(project))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def _fields(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        str(key): REDACTED if is_secret_field(str(key)) else _plain(value) for key, value in values.items()
    }


def _plain(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case list() | tuple():
            return [_plain(item) for item in value[:_MOST_ITEMS]]
        case Mapping():
            return _fields(value)
        case _:
            return value


def _text(text: str) -> str:
    return redacted(text[:_MOST_TEXT])
