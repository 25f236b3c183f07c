"""Patches: a new version of an object, told as the difference to the present one.

A merge patch (RFC 7396) replaces lists whole. A strategic one, which kubectl sends, knows that the entries of some lists are
told apart by a key. A JSON patch (RFC 6902) is a list of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runtender.local.kubernetes.documents import copied
from runtender.local.kubernetes.errors import StatusError, bad_request

Patch = Callable[[Any, Any], Any]

# What tells the entries of a list apart, by the list's name. Other lists are replaced whole.
_KEYS: Mapping[str, str] = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "secrets": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_SERVICE_PORT = "port"
_SETS = frozenset({"finalizers"})
_DIRECTIVE = "$patch"
_ORDER = "$setElementOrder/"
_REMOVAL = "$deleteFromPrimitiveList/"
_RETAIN = "$retainKeys"


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch."""
    if not isinstance(patch, Mapping):
        return copied(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def merge_strategically(target: Any, patch: Any) -> Any:
    """Apply a strategic merge patch; raises `StatusError` 400 for one that cannot be applied."""
    if not isinstance(patch, Mapping):
        return copied(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    if patch.get(_DIRECTIVE) == "replace":
        merged = {}
    if _RETAIN in patch:
        merged = {name: value for name, value in merged.items() if name in patch[_RETAIN]}
    for name, value in patch.items():
        if name.startswith(_REMOVAL):
            listed = name.removeprefix(_REMOVAL)
            merged[listed] = [one for one in merged.get(listed) or [] if one not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        elif isinstance(value, list):
            merged[name] = _merge_list(name, merged.get(name) or [], value, patch.get(_ORDER + name))
        else:
            merged[name] = merge_strategically(merged.get(name), value)
    return merged


def apply_steps(target: Any, steps: Any) -> Any:
    """Apply a JSON patch; raises `StatusError` 422 for a step that cannot be taken."""
    result = copied(target)
    if not isinstance(steps, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    for step in steps:
        try:
            _take(result, step)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            words = f"the server rejected our request due to an error in our request: {step.get('op')} {step.get('path')}"
            raise StatusError(422, "Invalid", words) from error
    return result


PATCHES: Mapping[str, Patch] = {
    "application/merge-patch+json": merge,
    "application/strategic-merge-patch+json": merge_strategically,
    "application/json-patch+json": apply_steps,
}
"""The kinds of patch that are taken, by content type."""


def _merge_list(name: str, present: list[Any], patch: list[Any], order: list[Any] | None) -> list[Any]:
    if name in _SETS:
        return [*present, *(one for one in patch if one not in present)]
    key = _key_of(name, [*present, *patch])
    if key is None:
        return [copied(one) for one in patch]
    merged = [] if any(one.get(_DIRECTIVE) == "replace" for one in patch) else list(present)
    for entry in patch:
        if entry.get(_DIRECTIVE) == "replace":
            continue
        at = next((index for index, one in enumerate(merged) if one.get(key) == entry.get(key)), None)
        if entry.get(_DIRECTIVE) == "delete":
            merged = [one for one in merged if one.get(key) != entry.get(key)]
        elif at is None:
            merged.append(merge_strategically({}, entry))
        else:
            merged[at] = merge_strategically(merged[at], entry)
    if order is None:
        return merged
    places = {entry.get(key): index for index, entry in enumerate(order)}
    return sorted(merged, key=lambda entry: places.get(entry.get(key), len(places)))


def _key_of(name: str, entries: list[Any]) -> str | None:
    key = _KEYS.get(name)
    if key is None or not all(isinstance(entry, Mapping) for entry in entries):
        return None
    # The ports of a Service have no container.
    if name == "ports" and any(_SERVICE_PORT in entry for entry in entries):
        return _SERVICE_PORT
    return key


def _take(document: Any, step: Mapping[str, Any]) -> None:
    parts = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
    holder = document
    for part in parts[:-1]:
        holder = holder[int(part)] if isinstance(holder, list) else holder[part]
    name: Any = parts[-1]
    if isinstance(holder, list):
        name = len(holder) if name == "-" else int(name)
    match step["op"]:
        case "add" if isinstance(holder, list):
            holder.insert(name, step["value"])
        case "add":
            holder[name] = step["value"]
        case "replace":
            holder[name]
            holder[name] = step["value"]
        case "remove":
            del holder[name]
        case "test":
            if holder[name] != step["value"]:
                raise ValueError(f"testing value {step['path']} failed")
        case other:
            raise ValueError(f"unknown operation {other}")
