"""Reading the CONFIG of a submit: a file, standard input or an object, as JSON or YAML, into one JSON object.

What the object means is the planner's business. Here it only has to be readable, and to survive the way to the plane
as JSON: no dates, no infinities.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from runtender.client.object_uri import parse_uri
from runtender.errors import Rejected
from runtender.ports import Objects
from runtender.wire.json_input import load_json

STDIN = "-"
# A config names models and parameters; anything near this is another file, a panel say.
_MAX_CONFIG_BYTES = 16 * 1024 * 1024


def read_config(source: str, objects: Objects) -> dict[str, Any]:
    """Return the JSON object at `source`: a path, `-`, or a `gs://` URI. Raises `Rejected` where there is none."""
    text = _text(source, objects)
    try:
        loaded = _load_yaml(text) if _is_yaml(source, text) else load_json(text)
    except (ValueError, RecursionError) as error:
        raise Rejected.because(
            "CONFIG", f"{source} is not readable: {error}", "write one JSON or YAML object"
        ) from error
    if not isinstance(loaded, dict):
        kind = type(loaded).__name__
        raise Rejected.because(
            "CONFIG", f"{source} holds a {kind}, not an object", "write {field: value, ...}"
        )
    return loaded


def _text(source: str, objects: Objects) -> str:
    content = _content(source, objects)
    if len(content) > _MAX_CONFIG_BYTES:
        problem = f"{source} is larger than {_MAX_CONFIG_BYTES >> 20} MiB"
        raise Rejected.because("CONFIG", problem, "name the run config, not the panel")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Rejected.because("CONFIG", f"{source} is not UTF-8 text", "save it as UTF-8") from error


def _content(source: str, objects: Objects) -> bytes:
    bound = _MAX_CONFIG_BYTES + 1
    if source == STDIN:
        return sys.stdin.buffer.read(bound)
    if source.startswith("gs://"):
        uri = parse_uri(source, "CONFIG")
        content = objects.read(uri.bucket, uri.name, limit=bound)
        if content is None:
            raise Rejected.because("CONFIG", f"{source} does not exist", "upload it, or name a file")
        return content
    try:
        with Path(source).open("rb") as file:
            return file.read(bound)
    except OSError as error:
        raise Rejected.because(
            "CONFIG", f"{source} cannot be read: {error.strerror}", "name a file, '-' or gs://..."
        ) from error


def _is_yaml(source: str, text: str) -> bool:
    # Standard input has no ending to go by; YAML that begins with a brace is JSON in all but rare cases.
    return source.endswith((".yaml", ".yml")) or not text.lstrip().startswith(("{", "["))


def _load_yaml(text: str) -> Any:
    from runtender.client.yaml_text import load_yaml  # noqa: PLC0415 - most configs are JSON, and need no such library

    return load_yaml(text, _MAX_CONFIG_BYTES)
