"""Objects checked against the published schemas of Kubernetes, where those are installed.

kubernetes-validate ships the schemas of each Kubernetes version. They know names, types, enumerations and what is required;
the rules between fields are `validation`'s. Without the package nothing is checked here, and the simulation is merely more
forgiving.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from runtender.local.kubernetes.resources import Resource

Schema = Mapping[str, Any]
Steps = tuple[str | int, ...]

_FOLDER = "kubernetes-json-schema"
# The folder of a version says what its schemas hold; the strict ones are closed to unknown names.
_VERSION = "v1.{}.0-local-strict"
_REFERENCE = "#/$defs/"


class Trouble(StrEnum):
    """What is wrong with a value."""

    UNKNOWN = "unknown"
    TYPE = "type"
    MISSING = "missing"
    CHOICE = "choice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing wrong: what, the steps to where, and what would be right."""

    trouble: Trouble
    steps: Steps
    value: object = None
    wanted: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it is, as messages write it: `spec.template.spec.containers[0].image`."""
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps).lstrip(
            "."
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_FITS: Mapping[str, Callable[[object], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}


@cache
def installed_schemas(minor: int) -> Schemas | None:
    """Load the schemas of Kubernetes 1.`minor`, or of the newest version before it; None without. About 40 ms, once."""
    package = find_spec("kubernetes_validate")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / _FOLDER
    for version in range(minor, 0, -1):
        path = folder / _VERSION.format(version) / "_definitions.json"
        if path.is_file():
            return Schemas(json.loads(path.read_text(encoding="utf-8"))["$defs"])
    return None


class Schemas:
    """The schemas of one version, by their names."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._kinds = dict(_kinds(definitions))

    def problems(self, resource: Resource, document: Mapping[str, Any]) -> list[Problem]:
        """Return everything that is wrong with an object."""
        schema = self._kinds.get((resource.group, resource.kind))
        return [] if schema is None else list(self._check(schema, document, ()))

    def _check(self, schema: Schema, value: object, steps: Steps) -> Iterator[Problem]:
        if "$ref" in schema:
            schema = self._definitions[schema["$ref"].rpartition(_REFERENCE)[2]]
        wanted = _types(schema)
        # A null is as good as nothing, whatever the schema says.
        if value is None:
            return
        if wanted and not any(_FITS[kind](value) for kind in wanted):
            yield Problem(trouble=Trouble.TYPE, steps=steps, value=value, wanted=wanted)
        elif isinstance(value, Mapping):
            yield from self._check_object(schema, value, steps)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                yield from self._check(schema.get("items", {}), item, (*steps, index))
        elif "enum" in schema and value not in schema["enum"]:
            choices = tuple(choice for choice in schema["enum"] if choice is not None)
            yield Problem(trouble=Trouble.CHOICE, steps=steps, value=value, wanted=choices)

    def _check_object(self, schema: Schema, value: Mapping[str, Any], steps: Steps) -> Iterator[Problem]:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        others: Schema | bool = schema.get("additionalProperties", not properties)
        for name in schema.get("required") or ():
            if value.get(name) is None:
                yield Problem(trouble=Trouble.MISSING, steps=(*steps, name))
        for name, item in value.items():
            if name in properties:
                yield from self._check(properties[name], item, (*steps, name))
            elif isinstance(others, Mapping):
                yield from self._check(others, item, (*steps, name))
            elif not others:
                yield Problem(trouble=Trouble.UNKNOWN, steps=(*steps, name))


def without_unknown(document: Any, problems: Iterable[Problem]) -> None:
    """Take the names out of a document that its server does not know."""
    for problem in problems:
        if problem.trouble is Trouble.UNKNOWN:
            *holders, name = problem.steps
            found = document
            for step in holders:
                found = found[step]
            found.pop(name, None)


def _kinds(definitions: Mapping[str, Schema]) -> Iterator[tuple[tuple[str, str], Schema]]:
    for name, schema in definitions.items():
        listed: Any = schema.get("x-kubernetes-group-version-kind") or ()
        # Options that many groups share are no objects.
        if len(listed) == 1 and listed[0]["version"] == "v1" and ".api." in name:
            yield (listed[0]["group"], listed[0]["kind"]), schema


def _types(schema: Schema) -> tuple[str, ...]:
    options: Iterable[Schema] = schema.get("oneOf") or ()
    if options:
        return tuple(kind for option in options for kind in _types(option))
    kinds: Any = schema.get("type", ())
    listed = [kinds] if isinstance(kinds, str) else kinds
    return tuple(kind for kind in listed if kind != "null")
