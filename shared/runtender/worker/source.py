"""The bootstraps as text: what a runtime puts behind `python -c`; the image does not hold the package."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_OURS = re.compile(r"^from runtender\.worker\.(\w+) import .+\n", re.MULTILINE)
# What stands before it, a text says of itself as a module.
_BEGINNING = "from __future__ import annotations\n"

# `sys` is a name of the text before it.
_CALL = """

if __name__ == "__main__":
    sys.exit(main([sys.executable, "-c", {program!r}, *sys.argv[1:]]))
"""


def bootstrap_source() -> str:
    """Return the program that fetches the package and calls its entry point (see `bootstrap`)."""
    return _text("bootstrap.py")


def index_source() -> str:
    """Return the program of one worker of an Indexed Job: it does what `bootstrap_source` does, and tells of it.

    The same arguments go behind it (see `index_bootstrap`).
    """
    return _self_contained(_text("index_bootstrap.py")) + _CALL.format(program=bootstrap_source())


def ray_source() -> str:
    """Return the program that starts Ray in a pod (see `ray_bootstrap`)."""
    return _text("ray_bootstrap.py")


def secrets_source() -> str:
    """Return the program that puts secrets in the place of their names and becomes the command behind it (see `secrets`)."""
    return _text("secrets.py")


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _self_contained(text: str) -> str:
    """Put what a text imports of ours in the place of the import."""
    return _OURS.sub(lambda match: _text(f"{match[1]}.py").split(_BEGINNING, 1)[1], text)
