"""What can be wrong with a user's catalogue of places, each thing with its field and its line.

A catalogue that is half right would send runs to places nobody meant, so one fault is enough to refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from runtender.errors import Fault

_REGION = re.compile(r"[a-z]+-[a-z]+[0-9]+")
_ZONE_LETTER = re.compile(r"[a-z]")
_SUBNET = re.compile(
    r"(https://[a-z.]+/compute/v1/)?projects/[^/]+/regions/(?P<region>[^/]+)/subnetworks/[^/]+"
)
_ENTRY = ("zones", "subnetwork_uri")
_MOST_SHOWN = 80

_Problem = tuple[tuple[str, ...], str, str]
"""Where (the keys that lead there), what, and what to do."""


def catalogue_faults(raw: Mapping[str, Any], text: str) -> tuple[Fault, ...]:
    """Return everything that is wrong with a catalogue, which was read from `text`."""
    return tuple(
        Fault(field=f"line {_line_of(text, keys)}: {_dotted(keys)}", problem=problem, remedy=remedy)
        for keys, problem, remedy in _problems(raw)
    )


def _problems(raw: Mapping[str, Any]) -> Iterator[_Problem]:
    for key in raw.keys() - {"regions"}:
        yield (key,), "is not a known key", "a catalogue has `regions` only"
    regions = raw.get("regions")
    if not isinstance(regions, Mapping) or not regions:
        yield ("regions",), "names no region", 'write {"regions": {"us-east1": {"zones": ["b"]}}}'
        return
    for name, entry in regions.items():
        yield from _region_problems(name, entry)


def _region_problems(name: str, entry: object) -> Iterator[_Problem]:
    here = ("regions", name)
    if not _REGION.fullmatch(name):
        yield here, "is not a region's name", "write e.g. europe-west4"
        return
    if not isinstance(entry, Mapping):
        yield here, f"{_shown(entry)} is no object", 'write {"subnetwork_uri": "..."} or {}'
        return
    for key in [key for key in entry if key not in _ENTRY]:
        yield (*here, key), "is not a known key", f"use {' and '.join(_ENTRY)}"
    yield from _zone_problems(here, name, entry.get("zones"))
    yield from _subnet_problems(here, name, entry.get("subnetwork_uri"))


def _zone_problems(here: tuple[str, ...], region: str, zones: object) -> Iterator[_Problem]:
    if zones is None:
        return
    if not isinstance(zones, list):
        yield (*here, "zones"), f"{_shown(zones)} is no list", 'write e.g. ["b", "c"]'
        return
    for zone in zones:
        letter = zone.removeprefix(f"{region}-") if isinstance(zone, str) else ""
        if not _ZONE_LETTER.fullmatch(letter):
            remedy = f"write its letter, or {region}-b in full"
            yield (
                (*here, "zones", *([zone] if isinstance(zone, str) else [])),
                (f"{_shown(zone)} is no zone of {region}"),
                remedy,
            )


def _subnet_problems(here: tuple[str, ...], region: str, uri: object) -> Iterator[_Problem]:
    if uri is None or uri == "":
        return
    match = _SUBNET.fullmatch(uri) if isinstance(uri, str) else None
    where = (*here, "subnetwork_uri")
    if match is None:
        yield (
            where,
            f"{_shown(uri)} is no subnet",
            f"write projects/P/regions/{region}/subnetworks/S, or null",
        )
    elif match["region"] != region:
        yield where, f"is a subnet of {match['region']}", f"name one of {region}"


def _line_of(text: str, keys: tuple[str, ...]) -> int:
    """Return the line on which the last of the keys stands, each looked for behind the one before it."""
    position = 0
    for key in keys:
        found = text.find(f'"{key}"', position)
        position = position if found < 0 else found
    return text.count("\n", 0, position) + 1


def _dotted(keys: tuple[str, ...]) -> str:
    return ".".join(keys[:3])


def _shown(value: object) -> str:
    return repr(value)[:_MOST_SHOWN]
