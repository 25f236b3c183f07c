"""Query parameters as an API server reads them."""

from __future__ import annotations

from collections.abc import Mapping

# What Go takes for true, which is what clients rely on.
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})


def flag(query: Mapping[str, str], name: str) -> bool:
    """True for a parameter that is switched on."""
    return query.get(name) in _TRUE
