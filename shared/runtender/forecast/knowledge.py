"""What a planner is told of the world beyond its settings: tables that change without a release, and what was measured.

All of it has a shipped default, so that a plan can be made without asking anybody.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtender.forecast.catalogue import Catalogue
from runtender.forecast.machines import SHIPPED


@dataclass(frozen=True, kw_only=True, slots=True)
class Knowledge:
    """Machine series and GPUs (`catalogue`)."""

    catalogue: Catalogue = SHIPPED
