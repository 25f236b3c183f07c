"""The embedded backend: one SQLite file, and the simulated Pub/Sub in this process. Runs wherever Python does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from runtender.local.http import Faults
from runtender.local.publisher import EmbeddedTopics
from runtender.local.store import SqliteStore
from runtender.local.topics import Arrivals, TopicsCore, TopicsServer, plane_subscriptions, plane_topics
from runtender.ports import Store, Topics
from runtender.settings import Settings


class EmbeddedBackend:
    """A backend whose documents lie in `folder`. `server` is its dispatcher, to be asked what is waiting there."""

    def __init__(
        self,
        *,
        folder: Path,
        settings: Settings,
        functions_url: str,
        arrivals: Arrivals,
        faults: Faults,
        now: Callable[[], datetime],
    ) -> None:
        core = TopicsCore(
            project=settings.project,
            topics=plane_topics(settings),
            subscriptions=plane_subscriptions(settings, functions_url),
            arrivals=arrivals,
        )
        file = folder / "store.sqlite"
        with ExitStack() as parts:
            self.server = parts.enter_context(TopicsServer(core, faults=faults, now=now))
            store = SqliteStore(file)
            parts.callback(store.close)
            self._parts = parts.pop_all()
        self.store: Store = store
        self.topics: Topics = EmbeddedTopics(self.server.url, settings.project)
        self.addresses: Mapping[str, str] = {"topics": self.server.url}
        self.variables: Mapping[str, str] = {
            "SF_STORE_PATH": str(file),
            "SF_TOPICS_ENDPOINT": self.server.url,
        }

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> str:
        return self.server.publish(topic, body, attributes, now)

    def delivered(self) -> Mapping[str, int]:
        by_subscription = self.server.counts()["subscriptions"]
        return {name: outcomes["delivered"] for name, outcomes in by_subscription.items()}

    def close(self) -> None:
        self._parts.close()
