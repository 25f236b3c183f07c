"""Reading JSON objects by a table of fields, so that one look at a config names all that is wrong.

A `Kind` says what a field accepts and how to put that in words. A `FieldReader` collects the faults of a
whole document; the values it returns hold only the fields that were present and right, so that dataclass
defaults fill in the rest.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runtender.errors import Fault, Rejected

_SHOWN = 80
_LONGEST_PATH = 200
# A document with more faults than anybody reads at once is mostly noise, and each costs a search for a name.
_MOST_FAULTS = 50
# Deeper than any config, and far from where Python's own recursion ends.
_DEEPEST = 32


LOCATION = r"[a-z]{2,20}-[a-z]{2,20}[0-9]{1,2}(-[a-z])?"
CLUSTER = rf"({LOCATION}/)?[a-z]([a-z0-9-]{{0,38}}[a-z0-9])?"
NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
MOST_WORKERS = 100_000
"""Kubernetes' own bound on the pods of a Job that counts its indexes."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a field takes.

    `expects` completes "must be ...", `make` gives an accepted value its final type, `schema` says the same as
    `accepts` in JSON Schema, as far as that can say it.
    """

    expects: str
    accepts: Callable[[Any], bool]
    make: Callable[[Any], Any] = lambda value: value
    schema: Mapping[str, Any] = field(default_factory=dict)


class FieldReader:
    """Collects the faults of one document."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def blames(self, path: str) -> bool:
        """Tell whether a fault has been found in the field at `path` or below it."""
        return any(fault.field == path or fault.field.startswith(f"{path}.") for fault in self._faults)

    def fault(self, field: str, problem: str, remedy: str = "") -> None:
        """Keep one fault; the same one found twice is kept once, and no more than 50 are."""
        fault = Fault(field=field[:_LONGEST_PATH], problem=problem, remedy=remedy)
        if self._full or fault in self._faults:
            return
        self._faults.append(fault)
        if len(self._faults) == _MOST_FAULTS:
            self._faults.append(Fault(field="", problem="there are more faults", remedy="mend these first"))

    def fields(
        self, raw: object, path: str, kinds: Mapping[str, Kind], *, required: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Return the fields of the object `raw` that are known and right; fault the others by their path."""
        if not isinstance(raw, Mapping):
            self.fault(path or "config", f"{shown(raw)} is not an object", "write a JSON object")
            return {}
        for name in required:
            if name not in raw:
                self.fault(_join(path, name), "is missing", f"it must be {kinds[name].expects}")
        return {
            name: kinds[name].make(value)
            for name, value in raw.items()
            if self._is_right(name, value, _join(path, name), kinds)
        }

    def refuse_depth(self, raw: object) -> None:
        """Raise `Rejected` for a document nested so deeply that reading it could end the interpreter."""
        layer = [raw]
        for _ in range(_DEEPEST):
            layer = [item for value in layer for item in _items(value)]
        if layer:
            self.fault("config", f"is nested deeper than {_DEEPEST} levels", "write it flatter")
            self.finish()

    def known(self, name: str, names: Iterable[str], field: str, what: str) -> bool:
        """Tell whether `name` is one of `names`; if not, keep a fault that offers the nearest one."""
        choices = tuple(names)
        if name in choices:
            return True
        if self._full:
            return False
        self.fault(field, f"{shown(name)} is not {what}", nearest(name, choices))
        return False

    def finish(self) -> None:
        """Raise `Rejected` with every fault found, if there is any."""
        if self._faults:
            raise self.rejection()

    def rejection(self) -> Rejected:
        """Return the error that carries every fault found so far."""
        return Rejected(self._faults)

    @property
    def _full(self) -> bool:
        return len(self._faults) >= _MOST_FAULTS

    def _is_right(self, name: str, value: object, field: str, kinds: Mapping[str, Kind]) -> bool:
        if not self.known(name, kinds, field, "a known field"):
            return False
        if kinds[name].accepts(value):
            return True
        self.fault(field, f"{shown(value)} is not accepted", f"it must be {kinds[name].expects}")
        return False


def shown(value: object) -> str:
    """Return a value as its sender wrote it, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def nearest(name: str, choices: Iterable[str]) -> str:
    """Return a remedy for a name that is not among `choices`: the nearest one, or all of them."""
    known = tuple(choices)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {shown(near[0])}?" if near else f"use one of {', '.join(known)}"


def text(longest: int = 1024) -> Kind:
    """Take a string that is not blank."""
    return Kind(
        f"a text of at most {longest} characters",
        lambda v: _is_text(v) and bool(v.strip()) and len(v) <= longest,
        schema={"type": "string", "pattern": r"\S", "maxLength": longest},
    )


def word() -> Kind:
    """Take any string that a process can be given as an argument."""
    return Kind(
        "a text without NUL",
        lambda v: _is_text(v) and "\x00" not in v,
        schema={"type": "string", "pattern": "^[^\\u0000]*$"},
    )


def flag() -> Kind:
    """Take true or false."""
    return Kind("true or false", lambda v: isinstance(v, bool), schema={"type": "boolean"})


def name_like(pattern: str, expects: str) -> Kind:
    """Take a string that is all of a regular expression: a name that becomes part of a URL or a path."""
    return Kind(
        expects,
        lambda v: isinstance(v, str) and re.fullmatch(pattern, v) is not None,
        schema={"type": "string", "pattern": f"^(?:{pattern})$"},
    )


def cluster_name() -> Kind:
    """Take a GKE cluster's name, or `location/name` where it stands more than once."""
    return name_like(CLUSTER, "a cluster's name, or location/name")


def cluster_location() -> Kind:
    """Take a region or zone."""
    return name_like(LOCATION, "a region or zone")


def namespace() -> Kind:
    """Take the name of a Kubernetes namespace."""
    return name_like(NAMESPACE, "a namespace's name: at most 63 of a-z, 0-9 and -")


def whole(least: int = 1, most: int | None = None) -> Kind:
    """Take an integer from `least` on, up to `most`."""
    top = "" if most is None else f" and at most {most:,}"
    bound = {} if most is None else {"maximum": most}
    return Kind(
        f"a whole number of at least {least}{top}",
        lambda v: _is_whole(v) and v >= least and (most is None or v <= most),
        schema={"type": "integer", "minimum": least, **bound},
    )


def number(least: float, *, above: bool = False, most: float = math.inf) -> Kind:
    """Take a finite number from `least` (or `above` it) to `most`; 50 and 50.0 become the same value."""
    bound = f"{'above' if above else 'of at least'} {least:g}"
    top = "" if most == math.inf else f" and at most {most:g}"
    bounds = {"exclusiveMinimum" if above else "minimum": least} | (
        {} if most == math.inf else {"maximum": most}
    )
    return Kind(
        f"a number {bound}{top}",
        lambda v: _is_finite(v) and (v > least if above else v >= least) and v <= most,
        float,
        {"type": "number", **bounds},
    )


def choice(*names: str) -> Kind:
    """Take one of the given words."""
    return Kind(
        f"one of {', '.join(names)}", lambda v: isinstance(v, str) and v in names, schema={"enum": [*names]}
    )


def optional(kind: Kind) -> Kind:
    """Take null as well."""
    return Kind(
        f"{kind.expects}, or null",
        lambda v: v is None or kind.accepts(v),
        lambda v: None if v is None else kind.make(v),
        {"anyOf": [kind.schema, {"type": "null"}]},
    )


def either(first: Kind, second: Kind) -> Kind:
    """Take what one of two kinds takes."""
    return Kind(
        f"{first.expects}, or {second.expects}",
        lambda v: first.accepts(v) or second.accepts(v),
        lambda v: first.make(v) if first.accepts(v) else second.make(v),
        {"anyOf": [first.schema, second.schema]},
    )


def list_of(kind: Kind, *, least: int = 0) -> Kind:
    """Take a list, and make it a tuple."""
    least_words = f" with at least {least} entries" if least > 1 else " that is not empty" if least else ""
    return Kind(
        f"a list{least_words}, each entry {kind.expects}",
        lambda v: isinstance(v, list | tuple) and len(v) >= least and all(kind.accepts(item) for item in v),
        lambda v: tuple(kind.make(item) for item in v),
        {"type": "array", "items": kind.schema} | ({"minItems": least} if least else {}),
    )


def block() -> Kind:
    """Take an object whose fields are read on their own."""
    return Kind("an object", lambda v: isinstance(v, Mapping), schema={"type": "object"})


def opaque() -> Kind:
    """Take any JSON object as it is; no NaN or infinity, which are no JSON."""
    return Kind(
        "an object of finite values",
        lambda v: isinstance(v, Mapping) and _is_json(v),
        schema={"type": "object"},
    )


def parameter() -> Kind:
    """Take what a model's parameter may be: null, a scalar, or a list of scalars; no NaN or infinity."""
    scalar = {"type": ["null", "boolean", "number", "string"]}
    return Kind(
        "a finite scalar or a list of them",
        lambda v: _is_scalar(v) or (isinstance(v, list | tuple) and all(_is_scalar(item) for item in v)),
        schema={"anyOf": [scalar, {"type": "array", "items": scalar}]},
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _items(value: object) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


def _is_whole(value: object) -> bool:
    # JSON's true is a Python int.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, bool) or _is_text(value) or _is_finite(value)


def _is_text(value: object) -> bool:
    # Half a surrogate pair passes a JSON parser, and breaks everything that writes the text somewhere.
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _is_json(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(_is_text(name) and _is_json(item) for name, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_json(item) for item in value)
    return _is_scalar(value)
