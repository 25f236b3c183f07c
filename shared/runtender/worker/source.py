"""The bootstraps as text: what a runtime puts behind `python -c`; the image does not hold the package."""

from __future__ import annotations

from importlib.resources import files


def bootstrap_source() -> str:
    """Return the program that fetches the package and calls its entry point (see `bootstrap`)."""
    return files(__package__).joinpath("bootstrap.py").read_text(encoding="utf-8")


def ray_source() -> str:
    """Return the program that starts Ray in a pod (see `ray_bootstrap`)."""
    return files(__package__).joinpath("ray_bootstrap.py").read_text(encoding="utf-8")
