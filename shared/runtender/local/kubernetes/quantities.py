"""Amounts as Kubernetes writes them: `250m`, `1.5`, `19Gi`, `2e3`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

_SCALES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE])|)")

Amounts = Mapping[str, Decimal]
"""How much of each resource: `cpu` in cores, `memory` in bytes, `nvidia.com/gpu` in pieces, `pods` in pieces."""


def parse_quantity(text: object) -> Decimal:
    """Read an amount; raises ValueError for what is none."""
    return _parse(str(text))


@lru_cache(maxsize=1024)
def _parse(text: str) -> Decimal:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    number, exponent, unit = found.groups()
    return Decimal(number + (exponent or "")) * _SCALES[unit or ""]


def requests_of(pod_spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return what a pod takes of its node: its containers' requests, or their limits where they name only those."""
    needed: dict[str, Decimal] = {"pods": Decimal(1)}
    for container in pod_spec.get("containers", ()):
        resources = container.get("resources") or {}
        for name, amount in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            needed[name] = needed.get(name, Decimal(0)) + parse_quantity(amount)
    return needed


def limits_of(pod_spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the sum of a pod's limits."""
    total: dict[str, Decimal] = {}
    for container in pod_spec.get("containers", ()):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            total[name] = total.get(name, Decimal(0)) + parse_quantity(amount)
    return total


def amounts_of(quantities: Mapping[str, Any]) -> dict[str, Decimal]:
    """Read a table of amounts."""
    return {name: parse_quantity(amount) for name, amount in quantities.items()}


def quantity(amount: Decimal) -> str:
    """Write an amount: whole, or in thousandths."""
    whole = amount.to_integral_value()
    return str(int(whole)) if amount == whole else f"{int(amount * 1000)}m"
