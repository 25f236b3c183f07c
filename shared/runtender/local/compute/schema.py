"""Request bodies checked against Google's published description of the API, where it is installed.

google-api-python-client ships Compute Engine's discovery document. It knows names, types, enumerations and patterns, but
no required fields: those are checked by `orders`. Without the package nothing is checked here and the simulation
is merely more forgiving.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runtender.local.compute.errors import bad_payload

Schema = Mapping[str, Any]

_DOCUMENT = Path("discovery_cache", "documents", "compute.v1.json")
_BODIES = ("Instance",)
# Taken by every list, though the document names it only for some.
_EVERYWHERE = frozenset({"returnPartialSuccess"})

_WHOLE = re.compile(r"-?\d+")


def _is_whole(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (isinstance(value, str) and _WHOLE.fullmatch(value) is not None)


_FITS: Mapping[str, Callable[[object], bool]] = {
    "any": lambda _value: True,
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}
_WHOLE_FORMATS = frozenset({"int64", "uint64"})


@cache
def installed_schemas() -> Schemas | None:
    """Load the discovery document of this environment; None when there is none. About 30 ms, once."""
    package = find_spec("googleapiclient")
    if package is None or package.origin is None:
        return None
    path = Path(package.origin).parent / _DOCUMENT
    return Schemas.read(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Schemas:
    """The part of a discovery document that is needed: body schemas by name, query parameters by method id."""

    bodies: Mapping[str, Schema]
    parameters: Mapping[str, frozenset[str]]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Schemas:
        """Take the schemas of our bodies, with all they refer to, and the parameters of all methods out."""
        common = _EVERYWHERE | frozenset(document["parameters"])
        return cls(
            bodies=_closure(document["schemas"], _BODIES),
            parameters={
                method["id"]: common | frozenset(method.get("parameters", ()))
                for resource in document["resources"].values()
                for method in resource.get("methods", {}).values()
            },
        )

    def check_query(self, method_id: str, query: Iterable[str]) -> None:
        """Raise `ApiError` for a query parameter that the method does not have."""
        known = self.parameters.get(method_id)
        for name in query:
            if known is not None and name not in known:
                raise bad_payload(
                    name,
                    f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.',
                )

    def check_body(self, name: str, body: object) -> None:
        """Raise `ApiError`, naming the path, where `body` is no `name`."""
        self._check({"$ref": name}, body, "resource")

    def _check(self, schema: Schema, value: object, path: str) -> None:
        if reference := schema.get("$ref"):
            schema = {"type": "object", **self.bodies[reference]}
        _check_type(schema, value, path)
        if isinstance(value, Mapping):
            self._check_object(schema, value, path)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._check(schema.get("items", {"type": "any"}), item, f"{path}[{index}]")
        else:
            _check_scalar(schema, value, path)

    def _check_object(self, schema: Schema, value: Mapping[str, Any], path: str) -> None:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        others: Schema | None = schema.get("additionalProperties")
        for key, item in value.items():
            inner = properties.get(key, others)
            if inner is None:
                problem = (
                    f"Invalid JSON payload received. Unknown name \"{key}\" at '{path}': Cannot find field."
                )
                raise bad_payload(path, problem)
            # The server ignores what only it may write.
            if not inner.get("readOnly"):
                self._check(inner, item, f"{path}.{key}")


def _check_type(schema: Schema, value: object, path: str) -> None:
    kind = str(schema.get("type", "any"))
    whole = schema.get("format") in _WHOLE_FORMATS
    if not (_is_whole(value) if whole else _FITS[kind](value)):
        wanted = str(schema["format"]) if whole else kind
        raise bad_payload(path, f"Invalid value at '{path}' ({wanted}), {json.dumps(value)}")


def _check_scalar(schema: Schema, value: object, path: str) -> None:
    choices = schema.get("enum")
    if choices and value not in choices:
        raise bad_payload(
            path, f"Invalid value for field '{path}': '{value}'. Must be one of {', '.join(choices)}."
        )
    pattern = schema.get("pattern")
    if pattern and isinstance(value, str) and not re.fullmatch(pattern, value):
        raise bad_payload(
            path, f"Invalid value for field '{path}': '{value}'. Must be a match of regex '{pattern}'"
        )


def _closure(schemas: Mapping[str, Schema], roots: Iterable[str]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = schemas[name]
            waiting += _references(schemas[name])
    return found


def _references(schema: object) -> list[str]:
    if isinstance(schema, Mapping):
        own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return own + [name for value in schema.values() for name in _references(value)]
    if isinstance(schema, list):
        return [name for value in schema for name in _references(value)]
    return []
