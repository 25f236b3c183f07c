"""The rules of a pod's spec, alone and in a template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from runtender.local.kubernetes.documents import Document
from runtender.local.kubernetes.errors import Cause, forbidden_field, required, unsupported, wrong_value
from runtender.local.kubernetes.nodes import GPU
from runtender.local.kubernetes.quantities import parse_quantity

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_MOST_LABEL = 63
_POLICIES = ("Always", "OnFailure", "Never")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# Of a pod that is there only these may be changed.
_CHANGEABLE = frozenset(
    {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"}
)
_UNCHANGEABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def wrong_pod_spec(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Go through what is wrong with a pod's spec."""
    volumes = [volume.get("name", "") for volume in spec.get("volumes") or ()]
    for name, count in Counter(volumes).items():
        if count > 1:
            yield Cause(
                field=f"{path}.volumes", reason="FieldValueDuplicate", words=f'Duplicate value: "{name}"'
            )
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    names = Counter(container.get("name", "") for container in containers)
    for index, container in enumerate(containers):
        where = f"{path}.containers[{index}]"
        if names[container.get("name", "")] > 1:
            words = f'Duplicate value: "{container["name"]}"'
            yield Cause(field=f"{where}.name", reason="FieldValueDuplicate", words=words)
        yield from _wrong_container(container, where, volumes)
    if spec.get("restartPolicy") not in _POLICIES:
        yield unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), _POLICIES)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and deadline < 1:
        yield wrong_value(
            f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"
        )
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        words = "must be greater than or equal to 0"
        yield wrong_value(
            f"{path}.terminationGracePeriodSeconds", spec["terminationGracePeriodSeconds"], words
        )


def wrong_template(template: Mapping[str, Any], path: str, policies: tuple[str, ...]) -> Iterator[Cause]:
    """Go through what is wrong with a pod template whose pods may restart only in some ways."""
    spec = template["spec"]
    yield from wrong_pod_spec(spec, path)
    if spec.get("restartPolicy") in _POLICIES and spec["restartPolicy"] not in policies:
        yield unsupported(f"{path}.restartPolicy", spec["restartPolicy"], policies)


def changed_pod(before: Document, after: Document) -> Iterator[Cause]:
    """Go through what may not be changed of a pod."""
    if _fixed(before["spec"]) != _fixed(after["spec"]):
        yield forbidden_field("spec", _UNCHANGEABLE)


def _fixed(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in spec.items() if name not in _CHANGEABLE}
    for kind in ("containers", "initContainers"):
        if kind in kept:
            kept[kind] = [{**one, "image": ""} for one in kept[kind]]
    return kept


def _wrong_container(container: Mapping[str, Any], path: str, volumes: list[str]) -> Iterator[Cause]:
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif _LABEL.fullmatch(name) is None or len(name) > _MOST_LABEL:
        yield wrong_value(f"{path}.name", name, _LABEL_WORDS)
    if not container.get("image"):
        yield required(f"{path}.image")
    if container.get("imagePullPolicy") not in _PULL_POLICIES:
        yield unsupported(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    for index, entry in enumerate(container.get("env") or ()):
        yield from _wrong_variable(entry, f"{path}.env[{index}]")
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{index}]"
        if mount.get("name") not in volumes:
            words = f'Not found: "{mount.get("name", "")}"'
            yield Cause(field=f"{where}.name", reason="FieldValueNotFound", words=words)
        if not mount.get("mountPath"):
            yield required(f"{where}.mountPath")
    yield from _wrong_resources(container.get("resources") or {}, f"{path}.resources")


def _wrong_variable(entry: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if not entry.get("name"):
        yield required(f"{path}.name")
    elif "=" in entry["name"]:
        yield wrong_value(
            f"{path}.name", entry["name"], "a valid environment variable name must not contain '='"
        )
    if entry.get("value") and entry.get("valueFrom"):
        yield wrong_value(f"{path}.valueFrom", {}, "may not be specified when `value` is not empty")


def _wrong_resources(resources: Mapping[str, Any], path: str) -> Iterator[Cause]:
    amounts: dict[str, dict[str, Any]] = {"limits": {}, "requests": {}}
    for kind, found in amounts.items():
        for name, text in (resources.get(kind) or {}).items():
            try:
                found[name] = parse_quantity(text)
            except ValueError as error:
                yield wrong_value(f"{path}.{kind}[{name}]", text, str(error))
    for name, amount in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is not None and amount > limit:
            words = f"must be less than or equal to {name} limit of {resources['limits'][name]}"
            yield wrong_value(f"{path}.requests", resources["requests"][name], words)
        elif name == GPU and limit is None:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
