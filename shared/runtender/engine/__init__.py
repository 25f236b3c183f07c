"""The engine: fetches what `decide` needs and carries out what it says. Knows ports only.

Taking messages in is `engine.intake`, apart from here: it brings the planner along, which two of three entry points
never need.
"""

from runtender.engine.plane import Plane
from runtender.engine.step import Engine
from runtender.engine.tick import Watchdog

__all__ = ["Engine", "Plane", "Watchdog"]
