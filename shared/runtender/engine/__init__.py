"""The engine: fetches what `decide` needs and carries out what it says. Knows ports only."""

from runtender.engine.intake import Intake, Receipt
from runtender.engine.plane import Plane
from runtender.engine.step import Engine
from runtender.engine.tick import Watchdog

__all__ = ["Engine", "Intake", "Plane", "Receipt", "Watchdog"]
