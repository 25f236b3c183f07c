"""What a client works on: the plane's settings and the seams to its store, objects and topics.

Commands and the Python API never pick an adapter. They are handed a `World`; the default one is wired on first use, from
what `configuration` gathered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from runtender.client.configuration import Configuration, gather
from runtender.client.errors import ClientError
from runtender.ports import Api, Clock, Objects, Quota, Store, Subscriptions, Topics
from runtender.settings import Settings

_NO_FLAGS: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """The plane as a client sees it.

    `clusters` is GKE with the clusters' own APIs; without it none is looked up. `server_time` tells the time by a server of
    the plane, None where that has no clock to show. `answer_wait` is how long the answer to a message is waited for,
    `patience` how long a store that is being watched may be out of reach.
    """

    settings: Settings
    store: Store
    objects: Objects
    topics: Topics
    subscriptions: Subscriptions
    quota: Quota
    clusters: Api | None = None
    clock: Clock
    server_time: Callable[[], datetime | None]
    # A cold start and a few commits take seconds; a prompt that hangs for longer helps nobody.
    answer_wait: timedelta = timedelta(seconds=30)
    # A lost network comes back, or somebody has gone home.
    patience: timedelta = timedelta(minutes=5)


def configure(flags: Mapping[str, str] = _NO_FLAGS) -> Configuration:
    """Gather what is said about the plane, and make the environment of this process say it.

    Raises `Rejected` where that is nothing, or wrong.
    """
    configuration = gather(os.environ, Path.cwd(), flags)
    # The official clients read their emulators' addresses from the environment of the process.
    configuration.adopt(os.environ)
    return configuration


def open_world() -> World:
    """Wire the world that `configure` left in the environment.

    Raises `Rejected` for settings that are missing or wrong, `ClientError` where there are no credentials.
    """
    from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - `--help` need not wait for the adapters

    try:
        return _wired()
    except GoogleAuthError as error:
        remedy = "run 'gcloud auth application-default login'"
        raise ClientError(f"no Google credentials: {error}; {remedy}") from error


def _wired() -> World:
    from runtender import wiring  # noqa: PLC0415 - as above

    settings = wiring.settings()
    return World(
        settings=settings,
        store=wiring.store(settings),
        objects=wiring.objects(settings),
        topics=wiring.topics(settings),
        subscriptions=wiring.subscriptions(settings),
        quota=wiring.quota(settings, wiring.compute(settings)),
        clusters=wiring.gke(settings),
        clock=wiring.clock(),
        server_time=wiring.server_time,
    )
