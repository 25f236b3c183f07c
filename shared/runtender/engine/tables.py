"""What a planner is told beyond the settings, fetched: the user's machines and prices, and what earlier runs measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runtender.engine.inputs import read_user_table
from runtender.engine.planning import Asked
from runtender.errors import Fault, Rejected
from runtender.forecast.catalogue import Catalogue, extended
from runtender.forecast.knowledge import Knowledge
from runtender.forecast.machines import SHIPPED
from runtender.forecast.prices import Prices, parse_prices, shipped_prices
from runtender.ports import Objects, Store
from runtender.settings import Settings


def read_knowledge(objects: Objects, settings: Settings) -> Knowledge:
    """Return what is shipped, with the user's files laid over it; raises `Rejected` for one that is missing or wrong."""
    return Knowledge(
        catalogue=_machines(objects, settings.machines), prices=_prices(objects, settings.prices)
    )


def read_profiles(store: Store, asked: Asked) -> dict[str, Mapping[str, Any] | None]:
    """Return the stored profiles that a message's families would use, by family."""
    found = {family: store.get(path) for family, path in asked.profile_paths().items()}
    return {family: None if snapshot is None else snapshot.data for family, snapshot in found.items()}


def _machines(objects: Objects, uri: str) -> Catalogue:
    if not uri:
        return SHIPPED
    try:
        return extended(SHIPPED, read_user_table(objects, "SF_MACHINES", uri))
    except Rejected as rejected:
        raise _named("SF_MACHINES", rejected) from rejected


def _prices(objects: Objects, uri: str) -> Prices:
    if not uri:
        return shipped_prices()
    try:
        return parse_prices(read_user_table(objects, "SF_PRICES", uri))
    except Rejected as rejected:
        raise _named("SF_PRICES", rejected) from rejected


def _named(setting: str, rejected: Rejected) -> Rejected:
    """Return the rejection with each fault's field below the setting that named the file."""
    return Rejected(
        fault
        if fault.field == setting
        else Fault(field=f"{setting}: {fault.field}", problem=fault.problem, remedy=fault.remedy)
        for fault in rejected.faults
    )
