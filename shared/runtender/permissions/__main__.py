"""Writes what is generated from the table of permissions, below the checkout's root: `python -m runtender.permissions`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from runtender.permissions.pages import page, roles_json


def generated() -> Mapping[str, str]:
    """Return each generated file's text by its path in the checkout."""
    return {
        "infra/modules/control-plane/permissions.json": roles_json(),
        "infra/PERMISSIONS.md": page(),
    }


def main() -> None:
    """Write them."""
    for name, text in generated().items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
