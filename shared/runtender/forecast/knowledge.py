"""What a planner is told of the world beyond its settings: tables that change without a release, and what was measured.

All of it has a shipped default, so that a plan can be made without asking anybody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtender.forecast.catalogue import Catalogue
from runtender.forecast.machines import SHIPPED
from runtender.forecast.prices import Prices, shipped_prices
from runtender.forecast.profiles import Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """Machine series and GPUs (`catalogue`), what machines cost (`prices`), and what was measured of each family's cells
    (`profiles`).
    """

    catalogue: Catalogue = SHIPPED
    prices: Prices = field(default_factory=shipped_prices)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
