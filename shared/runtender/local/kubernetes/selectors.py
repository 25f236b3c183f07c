"""Label and field selectors: which objects a list, a watch or a controller means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtender.local.kubernetes.documents import Document, labels_of
from runtender.local.kubernetes.errors import bad_request


class Operator(StrEnum):
    """How a requirement's values count."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    ABSENT = "DoesNotExist"
    ABOVE = "Gt"
    BELOW = "Lt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Requirement:
    """What one label has to be."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """True when the labels are so."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.ABSENT:
                return value is None
            case Operator.ABOVE:
                return value is not None and value.isdigit() and int(value) > int(self.values[0])
            case Operator.BELOW:
                return value is not None and value.isdigit() and int(value) < int(self.values[0])


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldTest:
    """What one field has to be, or (`equal` False) must not be."""

    path: tuple[str, ...]
    value: str
    equal: bool

    def met_by(self, document: Mapping[str, Any]) -> bool:
        """True when the object's field is so. A field that is not there is empty."""
        found: Any = document
        for step in self.path:
            found = found.get(step) if isinstance(found, Mapping) else None
        return (("" if found is None else str(found)) == self.value) is self.equal


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Both selectors of a request."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[FieldTest, ...] = ()

    def takes(self, document: Document) -> bool:
        """True for an object that is meant."""
        labels = labels_of(document)
        return all(one.met_by(labels) for one in self.labels) and all(
            one.met_by(document) for one in self.fields
        )


_TERM = re.compile(
    r"\s*(?:(?P<absent>!)\s*(?P<key0>[^\s,!=()]+)"
    r"|(?P<key1>[^\s,!=()]+)\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\)"
    r"|(?P<key2>[^\s,!=()]+)\s*(?P<sign>==|=|!=)\s*(?P<value>[^\s,!=()]*)"
    r"|(?P<key3>[^\s,!=()]+))\s*(?:,|$)"
)
_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
             "status.phase", "status.podIP"),
    "jobs": ("status.successful",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "secrets": ("type",),
    "events": ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
               "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
               "reason", "reportingComponent", "source", "type"),
}  # fmt: skip


def selection_of(resource: str, query: Mapping[str, str]) -> Selection:
    """Read the selectors of a request; raises `StatusError` 400 for one that cannot be read."""
    return Selection(
        labels=parse_labels(query.get("labelSelector", "")),
        fields=tuple(_field_tests(resource, query.get("fieldSelector", ""))),
    )


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Read a label selector as a query parameter carries it."""
    requirements = []
    position = 0
    while position < len(text):
        term = _TERM.match(text, position)
        if term is None:
            raise bad_request(f"unable to parse requirement: found '{text[position:]}' in '{text}'")
        requirements.append(_requirement(term))
        position = term.end()
    return tuple(requirements)


def expressions(listed: Iterable[Mapping[str, Any]]) -> tuple[Requirement, ...]:
    """Read `matchExpressions`, of labels or of nodes."""
    return tuple(
        Requirement(key=one["key"], operator=Operator(one["operator"]), values=tuple(one.get("values") or ()))
        for one in listed
    )


def _requirement(term: re.Match[str]) -> Requirement:
    if term["absent"]:
        return Requirement(key=term["key0"], operator=Operator.ABSENT)
    if term["set"]:
        values = tuple(value.strip() for value in term["values"].split(","))
        operator = Operator.IN if term["set"] == "in" else Operator.NOT_IN
        return Requirement(key=term["key1"], operator=operator, values=values)
    if term["sign"]:
        operator = Operator.NOT_IN if term["sign"] == "!=" else Operator.IN
        return Requirement(key=term["key2"], operator=operator, values=(term["value"],))
    return Requirement(key=term["key3"], operator=Operator.EXISTS)


def _field_tests(resource: str, text: str) -> Iterable[FieldTest]:
    known = (*_COMMON_FIELDS, *_FIELDS.get(resource, ()))
    for term in filter(None, text.split(",")):
        found = re.fullmatch(r"\s*([^=!\s]+)\s*(==|=|!=)\s*(.*?)\s*", term)
        if found is None:
            raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
        name, sign, value = found.groups()
        if name not in known:
            listed = ", ".join(f'"{field}"' for field in known)
            raise bad_request(f'field label not supported: "{name}"; known are {listed}')
        yield FieldTest(path=tuple(name.split(".")), value=value, equal=sign != "!=")
