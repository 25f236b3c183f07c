"""The bootstrap as text: what a runtime puts behind `python -c`; the image does not hold the package."""

from __future__ import annotations

from importlib.resources import files


def bootstrap_source() -> str:
    """Return the program that fetches the package and calls its entry point (see `bootstrap`)."""
    return files(__package__).joinpath("bootstrap.py").read_text(encoding="utf-8")
