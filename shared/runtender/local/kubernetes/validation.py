"""The rules that an object has to keep beyond its schema: names, labels, and what fields mean to each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from runtender.local.kubernetes.documents import Document, metadata_of
from runtender.local.kubernetes.errors import Cause, immutable, required, wrong_value
from runtender.local.kubernetes.job_validation import changed_job, wrong_job
from runtender.local.kubernetes.pod_validation import changed_pod, wrong_pod_spec, wrong_template

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_MOST_NAME = 253
_MOST_LABEL = 63
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character"
)
_LABEL_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character"
)
# Kinds whose names are one label of a host name.
_ONE_LABEL = frozenset({"namespaces", "services"})


def wrong_object(resource: str, document: Document) -> list[Cause]:
    """Return what is wrong with a new object. It has its defaults by now."""
    return [*_wrong_name(resource, document), *_wrong_labels(document), *_wrong_spec(resource, document)]


def wrong_change(resource: str, before: Document, after: Document) -> list[Cause]:
    """Return what is wrong with a new version of an object."""
    changed = _CHANGES.get(resource)
    refused = list(changed(before, after)) if changed else []
    return refused or [*_wrong_labels(after), *_wrong_spec(resource, after)]


def _wrong_name(resource: str, document: Document) -> Iterator[Cause]:
    name = str(metadata_of(document).get("name", ""))
    if not name:
        yield required("metadata.name", "name or generateName is required")
        return
    most = _MOST_LABEL if resource in _ONE_LABEL else _MOST_NAME
    pattern = _SERVICE_NAME if resource == "services" else _SUBDOMAIN
    if pattern.fullmatch(name) is None:
        yield wrong_value("metadata.name", name, _SUBDOMAIN_WORDS)
    elif len(name) > most:
        yield wrong_value("metadata.name", name, f"must be no more than {most} bytes")


def _wrong_labels(document: Document) -> Iterator[Cause]:
    yield from wrong_labels("metadata.labels", metadata_of(document).get("labels") or {})
    template = (document.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    yield from wrong_labels("spec.template.metadata.labels", labels)


def wrong_labels(field: str, labels: Mapping[str, str]) -> Iterator[Cause]:
    """Go through what is wrong with some labels."""
    for key, value in labels.items():
        prefix, _, name = key.rpartition("/")
        if not name or len(name) > _MOST_LABEL or _VALUE.fullmatch(name) is None:
            yield wrong_value(
                field, key, f"name part must be no more than {_MOST_LABEL} characters; {_LABEL_WORDS}"
            )
        if prefix and _SUBDOMAIN.fullmatch(prefix) is None:
            yield wrong_value(field, key, f"prefix part {_SUBDOMAIN_WORDS}")
        if len(value) > _MOST_LABEL:
            yield wrong_value(field, value, f"must be no more than {_MOST_LABEL} characters")
        elif _VALUE.fullmatch(value) is None:
            yield wrong_value(field, value, _LABEL_WORDS)


def _wrong_spec(resource: str, document: Document) -> Iterator[Cause]:
    check = _SPECS.get(resource)
    if check is not None:
        yield from check(document)


def _wrong_pod(pod: Document) -> Iterator[Cause]:
    yield from wrong_pod_spec(pod["spec"], "spec")


def _wrong_deployment(deployment: Document) -> Iterator[Cause]:
    spec = deployment["spec"]
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    if not selector:
        yield required("spec.selector")
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        words = "`selector` does not match template `labels`"
        yield wrong_value("spec.template.metadata.labels", dict(labels), words)
    yield from wrong_template(spec["template"], "spec.template.spec", policies=("Always",))


def _changed_deployment(before: Document, after: Document) -> Iterator[Cause]:
    if before["spec"].get("selector") != after["spec"].get("selector"):
        yield immutable("spec.selector", after["spec"].get("selector"))


_SPECS: Mapping[str, Callable[[Document], Iterator[Cause]]] = {
    "pods": _wrong_pod,
    "jobs": wrong_job,
    "deployments": _wrong_deployment,
}
_CHANGES: Mapping[str, Callable[[Document, Document], Iterator[Cause]]] = {
    "pods": changed_pod,
    "jobs": changed_job,
    "deployments": _changed_deployment,
}
