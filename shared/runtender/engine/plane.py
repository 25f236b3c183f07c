"""Everything the plane is wired to, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runtender.ports import Api, Clock, Objects, Quota, Runtime, Store, Topics
from runtender.settings import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Plane:
    """The ports and settings of one deployment. `runtimes` and `apis` are keyed by the runtime's name.

    Without `quota` no limit is known, and nothing is held back for one.
    """

    settings: Settings
    store: Store
    objects: Objects
    topics: Topics
    clock: Clock
    runtimes: Mapping[str, Runtime]
    apis: Mapping[str, Api]
    quota: Quota | None = None
