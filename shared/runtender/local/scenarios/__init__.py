"""The scenarios that are shipped, and how one is found by name or by file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runtender.errors import Rejected
from runtender.local.scenario import Scenario, load_scenario

FAIR = Scenario()

_SHIPPED = Path(__file__).parent
_SUFFIXES = frozenset({".yaml", ".yml"})


def shipped() -> tuple[str, ...]:
    """Return the names of the shipped scenarios."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*.yaml")))


def descriptions() -> Mapping[str, str]:
    """Return what each shipped scenario is about, by its name."""
    return {name: find_scenario(name).description for name in shipped()}


def find_scenario(reference: str | None) -> Scenario:
    """Return a shipped scenario by its name, or the one of a YAML file; fair weather for None.

    Raises `Rejected` where there is none, or where it has faults.
    """
    if reference is None:
        return FAIR
    if reference in shipped():
        return load_scenario(_SHIPPED / f"{reference}.yaml")
    path = Path(reference)
    try:
        return load_scenario(path)
    except OSError as error:
        if path.suffix in _SUFFIXES:
            problem, remedy = f"{path} cannot be read: {error.strerror}", "name a YAML file"
        else:
            problem, remedy = (
                f"{reference!r} is not known",
                f"use one of {', '.join(shipped())}, or a YAML file",
            )
        raise Rejected.because("scenario", problem, remedy) from error
