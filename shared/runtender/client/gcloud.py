"""The active project of the gcloud command, read from its own files: asking gcloud itself takes a second."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path


def active_project(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Return gcloud's active project and where that is written; None where there is none.

    The variables with which gcloud itself is told otherwise count here too.
    """
    if project := environment.get("CLOUDSDK_CORE_PROJECT", ""):
        return project, "CLOUDSDK_CORE_PROJECT"
    folder = _folder(environment)
    if folder is None:
        return None
    name = environment.get("CLOUDSDK_ACTIVE_CONFIG_NAME", "") or _first_line(folder / "active_config")
    path = folder / "configurations" / f"config_{name or 'default'}"
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        # It is gcloud's file; whoever uses gcloud will be told by it.
        return None
    project = parser.get("core", "project", fallback="").strip()
    return (project, str(path)) if project else None


def _folder(environment: Mapping[str, str]) -> Path | None:
    if folder := environment.get("CLOUDSDK_CONFIG", ""):
        return Path(folder)
    home = environment.get("HOME", "")
    return Path(home) / ".config" / "gcloud" if home else None


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
