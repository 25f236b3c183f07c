"""Where a local cloud keeps its documents and carries its messages: an embedded backend, or Google's emulators."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from runtender.local.backend.embedded import EmbeddedBackend
from runtender.local.backend.seam import Backend, BackendName
from runtender.local.emulators import emulator_hosts, find_emulators
from runtender.local.environment import PROJECT
from runtender.local.http import Faults
from runtender.local.topics import Arrivals
from runtender.settings import Settings

__all__ = ["Backend", "BackendName", "check_backend", "open_backend", "project_of"]


def check_backend(name: BackendName, environment: Mapping[str, str]) -> None:
    """Raise `LocalCloudError` for a backend that this machine lacks; it says how to install what is missing."""
    if name is BackendName.GOOGLE:
        find_emulators(environment)


def project_of(name: BackendName, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the project of the cloud in `folder`: of its own in emulators that others may use as well."""
    if name is BackendName.GOOGLE and emulator_hosts(environment):
        return f"{PROJECT}-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    return PROJECT


def open_backend(
    name: BackendName,
    *,
    folder: Path,
    logs: Path,
    settings: Settings,
    functions_url: str,
    arrivals: Arrivals,
    faults: Faults,
    now: Callable[[], datetime],
) -> Backend:
    """Open a backend with the plane's topics, whose subscriptions push to `functions_url`.

    What rules there are about events and API calls, and the services' clock, hold for both as far as Google's emulators let
    them: they publish by themselves, and in real time. Raises `LocalCloudError` where it does not start.
    """
    if name is BackendName.EMBEDDED:
        return EmbeddedBackend(
            folder=folder,
            settings=settings,
            functions_url=functions_url,
            arrivals=arrivals,
            faults=faults,
            now=now,
        )
    from runtender.local.backend.google import GoogleBackend  # noqa: PLC0415 - half a second that few need

    return GoogleBackend(
        find_emulators(os.environ),
        folder=folder,
        logs=logs,
        settings=settings,
        functions_url=functions_url,
        arrivals=arrivals,
    )
