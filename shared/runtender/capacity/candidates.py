"""Where to look for capacity, in which order.

The home region first, then regions that have a subnet of their own.

A catalogue names regions, their zones and their subnets. A region outside the home one is tried only on its
own subnet: falling back to the default network would give up private nodes without saying so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from runtender.model import Placement

ZONES: Mapping[str, tuple[str, ...]] = {
    "us-central1": ("a", "b", "c", "f"),
    "us-east1": ("b", "c", "d"),
    **dict.fromkeys(
        ("us-east4", "us-east5", "us-south1", "us-west1", "us-west2", "us-west3", "us-west4"), ("a", "b", "c")
    ),
}
"""Zone letters of the regions that are known without a catalogue."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """A region of the catalogue. Without a subnet of its own it serves only as the home region."""

    name: str
    zones: tuple[str, ...]
    subnetwork_uri: str = ""


def built_in_regions() -> tuple[Region, ...]:
    """Return the catalogue that is used where there is no other: known zones, no subnets."""
    return tuple(Region(name=name, zones=_built_in_zones(name)) for name in ZONES)


def parse_catalogue(raw: object) -> tuple[Region, ...]:
    """Read `{"regions": {name: {"zones": [...], "subnetwork_uri": ...}}}`, in its order.

    Zones may be written whole (`us-east1-b`) or as letters; missing ones come from the built-in map. Raises
    ValueError saying what is wrong, so that the caller can warn and use `built_in_regions`.
    """
    regions = _object(raw).get("regions")
    if not _object(regions):
        raise ValueError('the catalogue has no regions; write {"regions": {"us-east1": {"zones": ["b"]}}}')
    return tuple(_region(str(name), entry) for name, entry in _object(regions).items())


def candidates(home: str, subnetwork_uri: str, catalogue: Iterable[Region]) -> tuple[Placement, ...]:
    """Return all placements in the order to try them, each once.

    The first leaves the zone to the platform.
    """
    regions = tuple(catalogue)
    at_home = next((region.zones for region in regions if region.name == home), _built_in_zones(home))
    own = [Placement(region=home, zone=zone, subnetwork_uri=subnetwork_uri) for zone in (None, *at_home)]
    elsewhere = [
        Placement(region=region.name, zone=zone, subnetwork_uri=region.subnetwork_uri)
        for region in regions
        if region.name != home and region.subnetwork_uri
        for zone in region.zones
    ]
    return tuple(dict.fromkeys([*own, *elsewhere]))


def zonal_candidates(home: str, subnetwork_uri: str, catalogue: Iterable[Region]) -> tuple[Placement, ...]:
    """Return the placements that name a zone, for VMs.

    A home region nobody knows is tried in its zone `a`.
    """
    zonal = tuple(p for p in candidates(home, subnetwork_uri, catalogue) if p.zone is not None)
    if any(placement.region == home for placement in zonal):
        return zonal
    return (Placement(region=home, zone=f"{home}-a", subnetwork_uri=subnetwork_uri), *zonal)


def cluster_candidates(
    home: str, subnetwork_uri: str, catalogue: Iterable[Region], regions: Iterable[str] = ()
) -> tuple[Placement, ...]:
    """Return the placements of a cluster: the zones of the regions that a config names, else those of VMs.

    A named region without a subnet of its own gets the default network's.
    """
    known = {region.name: region for region in catalogue}
    named = tuple(regions)
    if not named:
        return zonal_candidates(home, subnetwork_uri, known.values())
    return tuple(
        Placement(
            region=name, zone=zone, subnetwork_uri=subnetwork_uri if name == home else _subnet(known, name)
        )
        for name in named
        for zone in _zones_of(known, name)
    )


def _zones_of(known: Mapping[str, Region], region: str) -> tuple[str, ...]:
    listed = known[region].zones if region in known else ()
    return listed or _built_in_zones(region) or (f"{region}-a",)


def _subnet(known: Mapping[str, Region], region: str) -> str:
    return known[region].subnetwork_uri if region in known else ""


def _built_in_zones(region: str) -> tuple[str, ...]:
    return tuple(f"{region}-{letter}" for letter in ZONES.get(region, ()))


def _object(raw: object) -> Mapping[str, Any]:
    return raw if isinstance(raw, Mapping) else {}


def _region(name: str, raw: object) -> Region:
    entry = _object(raw)
    subnet = entry.get("subnetwork_uri") or ""
    if not isinstance(raw, Mapping) or not isinstance(subnet, str):
        raise ValueError(
            f'catalogue region {name!r} is malformed; write {{"subnetwork_uri": "<URI>"}} or {{}}'
        )
    return Region(name=name, zones=_zones(name, entry.get("zones")), subnetwork_uri=subnet)


def _zones(region: str, raw: Any) -> tuple[str, ...]:
    if raw is None or raw == []:
        return _built_in_zones(region)
    if not isinstance(raw, list) or not all(isinstance(zone, str) and zone for zone in raw):
        raise ValueError(f'catalogue region {region!r}: zones is no list of zones; write e.g. ["b", "c"]')
    return tuple(zone if zone.startswith(f"{region}-") else f"{region}-{zone}" for zone in raw)
