"""What a container needs before it can start: its environment filled in, and the volumes that it mounts."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from runtender.local.kubernetes.documents import (
    Document,
    Key,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from runtender.local.kubernetes.events import PodStarted
from runtender.local.kubernetes.nodes import GPU
from runtender.local.kubernetes.pods import first_container, node_of
from runtender.local.kubernetes.quantities import parse_quantity
from runtender.local.kubernetes.store import Store

_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_REGISTRY_NAME = re.compile(r"[a-z0-9][a-z0-9._:/@-]*(?:[:@][\w.:-]+)?")
_SOURCES = {"configMapKeyRef": "configmap", "secretKeyRef": "secret"}
_KINDS = {"configmap": "ConfigMap", "secret": "Secret"}


class Misconfigured(Exception):
    """A container that cannot be made: something that its pod names is not there."""


def is_image_name(image: str) -> bool:
    """True for something that a registry could hold."""
    return _REGISTRY_NAME.fullmatch(image) is not None


def missing_volume(store: Store, pod: Document) -> str:
    """Say which volume of a pod cannot be mounted, and why; "" when all can."""
    for volume in pod["spec"].get("volumes") or ():
        for kind, field, resource in (("configMap", "name", "configmap"), ("secret", "secretName", "secret")):
            source = volume.get(kind)
            if not source or source.get("optional"):
                continue
            if _stored(store, pod, f"{resource}s", source[field]) is None:
                return f'MountVolume.SetUp failed for volume "{volume["name"]}" : {resource} "{source[field]}" not found'
    return ""


def start_of(store: Store, cluster: str, pod: Document, restart: int) -> PodStarted:
    """Return the order to run a pod's container; raises `Misconfigured`."""
    spec, container = pod["spec"], first_container(pod)
    hostname = spec.get("hostname") or name_of(pod)
    env = {"HOSTNAME": hostname, **environment(store, pod)}
    kinds = {volume["name"]: _volume_kind(volume) for volume in spec.get("volumes") or ()}
    mounts = container.get("volumeMounts") or ()
    limits = (container.get("resources") or {}).get("limits") or {}
    return PodStarted(
        cluster=cluster,
        namespace=namespace_of(pod),
        name=name_of(pod),
        uid=uid_of(pod),
        restart=restart,
        node=node_of(pod),
        hostname=hostname,
        container=container["name"],
        image=container["image"],
        command=tuple(expand(word, env) for word in container.get("command") or ()),
        args=tuple(expand(word, env) for word in container.get("args") or ()),
        env=env,
        working_dir=container.get("workingDir", ""),
        labels=labels_of(pod),
        annotations=annotations_of(pod),
        volumes={mount["mountPath"]: kinds[mount["name"]] for mount in mounts},
        service_account=spec.get("serviceAccountName", "default"),
        gpus=int(parse_quantity(limits.get(GPU, 0))),
    )


def environment(store: Store, pod: Document) -> dict[str, str]:
    """Return the environment of a pod's container, every value filled in; raises `Misconfigured`."""
    container = first_container(pod)
    env: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        for kind, resource in (("configMapRef", "configmap"), ("secretRef", "secret")):
            if reference := source.get(kind):
                found = _values(store, pod, resource, reference)
                env |= {source.get("prefix", "") + key: value for key, value in found.items()}
    for entry in container.get("env") or ():
        value = _value(store, pod, entry, env)
        if value is not None:
            env[entry["name"]] = value
    return env


def _value(store: Store, pod: Document, entry: Mapping[str, Any], env: Mapping[str, str]) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return expand(entry.get("value", ""), env)
    if reference := source.get("fieldRef"):
        return _field(pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return _resource(pod, reference["resource"])
    for kind, resource in _SOURCES.items():
        if reference := source.get(kind):
            values = _values(store, pod, resource, reference)
            if reference["key"] not in values and not reference.get("optional"):
                where = f"{_KINDS[resource]} {namespace_of(pod)}/{reference['name']}"
                raise Misconfigured(f"couldn't find key {reference['key']} in {where}")
            return values.get(reference["key"])
    return ""


def _values(store: Store, pod: Document, resource: str, reference: Mapping[str, Any]) -> dict[str, str]:
    found = _stored(store, pod, f"{resource}s", reference["name"])
    if found is None:
        if reference.get("optional"):
            return {}
        raise Misconfigured(f'{resource} "{reference["name"]}" not found')
    values: Mapping[str, str] = found.get("data") or {}
    if resource == "configmap":
        return dict(values)
    plain: Mapping[str, str] = found.get("stringData") or {}
    return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in values.items()} | dict(
        plain
    )


def _stored(store: Store, pod: Document, resource: str, name: str) -> Document | None:
    return store.get(Key(resource=resource, namespace=namespace_of(pod), name=name))


def _field(pod: Document, path: str) -> str:
    """Read a field of the pod as the downward API names it."""
    if keyed := _KEYED.fullmatch(path):
        return str((pod["metadata"].get(keyed[1]) or {}).get(keyed[2], ""))
    found: Any = pod
    for step in path.split("."):
        found = found.get(step, "") if isinstance(found, Mapping) else ""
    return str(found)


def _resource(pod: Document, path: str) -> str:
    kind, _, name = path.partition(".")
    amounts = (first_container(pod).get("resources") or {}).get(kind) or {}
    return str(int(parse_quantity(amounts.get(name, 0)).to_integral_value(rounding="ROUND_CEILING")))


def expand(text: str, env: Mapping[str, str]) -> str:
    """Fill in `$(NAME)`, where there is such a name, and make one `$` of each `$$`, as Kubernetes does."""

    def fill(found: re.Match[str]) -> str:
        return "$" if found[1] is None else env.get(found[1], found[0])

    return _REFERENCE.sub(fill, text)


def _volume_kind(volume: Mapping[str, Any]) -> str:
    return next((kind for kind in volume if kind != "name"), "emptyDir")
