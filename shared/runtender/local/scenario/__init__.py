"""Scenarios: what goes wrong in a local cloud, when, and how a run is expected to end all the same.

`rules` has what a scenario can say, `file` reads it from YAML, the other modules carry it out on the simulated services.
All of it is described for users in `scenarios/README.md`.
"""

from runtender.local.scenario.file import load_scenario, parse_scenario
from runtender.local.scenario.rules import Scenario, Shape, Stockout

__all__ = ["Scenario", "Shape", "Stockout", "load_scenario", "parse_scenario"]
