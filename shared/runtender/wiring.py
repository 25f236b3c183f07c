"""Where ports meet adapters: chosen once per process, by SF_BACKEND (google | embedded).

Every import of a client is inside the function that needs it, so that an entry point loads only what it uses. The
embedded backend belongs to the local cloud and is not in the deployed bundle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from runtender.engine.plane import Plane
from runtender.errors import Rejected
from runtender.gcp.clock import SystemClock
from runtender.gcp.compute import COMPUTE_URL, RestApi
from runtender.gcp.http import server_time as read_server_time
from runtender.gcp.serviceusage import SERVICE_USAGE_URL, GoogleQuota
from runtender.gcp.session import HttpSession, plain_session
from runtender.gcp.storage import STORAGE_URL, StorageObjects
from runtender.ports import Api, Clock, Objects, Quota, Runtime, Store, Subscriptions, Topics
from runtender.runtimes.gce_vm import GceVm
from runtender.settings import Settings

T = TypeVar("T")

# A run is not to wait longer for what only saves it a refusal.
_QUOTA_PATIENCE = timedelta(seconds=20)


def settings() -> Settings:
    """Read the settings of this process; raises `Rejected` naming every variable that is missing or wrong."""
    return Settings.from_env(os.environ)


def clock() -> Clock:
    """Return the machine's clock."""
    return SystemClock()


def store(of: Settings) -> Store:
    """Return the document store: Firestore, or the local cloud's file."""
    if of.backend == "embedded":
        from runtender.local.store import SqliteStore  # noqa: PLC0415 - not in the deployed bundle

        return SqliteStore(Path(_local_address("SF_STORE_PATH")))
    from runtender.gcp.firestore import FirestoreStore  # noqa: PLC0415 - the embedded backend needs no grpc

    return FirestoreStore(of.project)


def topics(of: Settings) -> Topics:
    """Return the publisher: Pub/Sub, or the local cloud's dispatcher."""
    if of.backend == "embedded":
        from runtender.local.publisher import EmbeddedTopics  # noqa: PLC0415 - not in the deployed bundle

        return EmbeddedTopics(_local_address("SF_TOPICS_ENDPOINT"), of.project)
    from runtender.gcp.pubsub import PubSubTopics  # noqa: PLC0415 - cold start

    return PubSubTopics(of.project)


def objects(of: Settings) -> Objects:
    """Return Cloud Storage, or its stand-in at STORAGE_EMULATOR_HOST (the official clients' own variable)."""
    url = os.environ.get("STORAGE_EMULATOR_HOST", "") or STORAGE_URL
    return StorageObjects(_session(url, STORAGE_URL), url, clock=clock(), timeout=of.timing.http_timeout)


def subscriptions(of: Settings) -> Subscriptions:
    """Return the reading side of Pub/Sub, or of the local cloud's dispatcher. No entry point needs it."""
    if of.backend == "embedded":
        from runtender.local.subscriber import EmbeddedSubscriptions  # noqa: PLC0415 - not in the deployed bundle

        return EmbeddedSubscriptions(_local_address("SF_TOPICS_ENDPOINT"), of.project)
    from runtender.gcp.subscriptions import PubSubSubscriptions  # noqa: PLC0415 - cold start

    return PubSubSubscriptions(of.project)


def server_time() -> datetime | None:
    """Return the time by Cloud Storage, or its stand-in; None where it does not answer."""
    url = os.environ.get("STORAGE_EMULATOR_HOST", "") or STORAGE_URL
    return read_server_time(_session(url, STORAGE_URL), url)


def compute(of: Settings) -> Api:
    """Return Compute Engine, or its stand-in at SF_COMPUTE_ENDPOINT."""
    url = os.environ.get("SF_COMPUTE_ENDPOINT", "") or COMPUTE_URL
    return RestApi(_session(url, COMPUTE_URL), url, clock=clock(), timeout=of.timing.http_timeout)


def gke(of: Settings) -> Api:
    """Return GKE with its clusters' Kubernetes APIs, or their stand-in at SF_CONTAINER_ENDPOINT.

    Beside a stand-in SF_CLUSTER_ROOTS names a PEM file with the authority of its clusters' names.
    """
    from runtender.gcp.kubernetes import CONTAINER_URL, GkeApi, google_sessions  # noqa: PLC0415 - cold start

    url = os.environ.get("SF_CONTAINER_ENDPOINT", "")
    if not url:
        return GkeApi(CONTAINER_URL, clock=clock(), sessions=google_sessions, timeout=of.timing.http_timeout)
    roots = os.environ.get("SF_CLUSTER_ROOTS", "")
    return GkeApi(
        url,
        clock=clock(),
        sessions=plain_session,
        roots=Path(roots).read_text(encoding="ascii") if roots else None,
        timeout=of.timing.http_timeout,
    )


def quota(of: Settings, engine: Api) -> Quota:
    """Return the reader of quota. Beside a stand-in of Compute Engine, only SF_SERVICEUSAGE_ENDPOINT names a Service Usage."""
    stands_in = bool(os.environ.get("SF_COMPUTE_ENDPOINT"))
    url = os.environ.get("SF_SERVICEUSAGE_ENDPOINT", "") or ("" if stands_in else SERVICE_USAGE_URL)
    limits = None
    if url:
        session = _session(url, SERVICE_USAGE_URL)
        limits = RestApi(session, url, clock=clock(), timeout=min(of.timing.http_timeout, _QUOTA_PATIENCE))
    return GoogleQuota(of.project, engine, limits, clock=clock())


def plane() -> Plane:
    """Wire the whole plane from the environment."""
    of = settings()
    engine = compute(of)
    return Plane(
        settings=of,
        store=store(of),
        objects=objects(of),
        topics=topics(of),
        clock=clock(),
        runtimes=Lazily({"gce": GceVm, "gke": _gke_job}),
        apis=Lazily({"gce": lambda: engine, "gke": lambda: gke(of)}),
        quota=quota(of, engine),
    )


class Lazily(Mapping[str, T]):
    """Things by name, each made when it is first asked for: an entry point loads only the runtimes that it meets."""

    def __init__(self, makers: Mapping[str, Callable[[], T]]) -> None:
        self._makers = makers
        self._made: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


def _gke_job() -> Runtime:
    from runtender.runtimes.gke_job import GkeJob  # noqa: PLC0415 - most planes make VMs only

    return GkeJob()


def _session(url: str, google: str) -> HttpSession:
    """Sign what goes to Google, and nothing that goes to a stand-in."""
    if url == google:
        from runtender.gcp.session import google_session  # noqa: PLC0415 - the local cloud has no credentials

        return google_session()
    import requests  # noqa: PLC0415 - the same

    session = requests.Session()
    # A proxy or a .netrc of the environment has no business on the loopback address.
    session.trust_env = False
    return session


def _local_address(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        remedy = "start the local cloud with `runtender local up`, and take its variables from `runtender local env`"
        raise Rejected.because(name, "is not set although SF_BACKEND is embedded", remedy)
    return value
