"""The whole local cloud as one value: simulated services in this process, functions and machines in their own.

`LocalCloud` is what the supervisor holds in the background, what the demo runs on, and what tests open in a `with`
statement. Every port is free to be any, so several clouds run side by side.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType

import requests

from runtender.gcp.clock import SystemClock
from runtender.gcp.storage import StorageObjects
from runtender.local.backend import Backend, BackendName, open_backend, project_of
from runtender.local.compute.core import ComputeCore
from runtender.local.compute.events import Event
from runtender.local.compute.schema import installed_schemas
from runtender.local.compute.server import ComputeServer
from runtender.local.compute.timings import Timings
from runtender.local.environment import (
    CODE_BUCKET,
    FLIGHTS_OBJECT,
    PLACES_OBJECT,
    WAREHOUSE_BUCKET,
    Addresses,
    clean_environment,
    places,
    plane_environment,
    plane_settings,
)
from runtender.local.functions_process import ENTRY_POINTS, FunctionsProcess
from runtender.local.http import LocalAuthority
from runtender.local.objects import DiskBodies, Notification, ObjectsCore, ObjectServer
from runtender.local.scenario import Scenario
from runtender.local.scenario.weather import Weather
from runtender.local.scenarios import FAIR
from runtender.local.secrets import SecretServer
from runtender.local.sources import FLIGHTS_PANEL, functions_source
from runtender.local.standing_cluster import StandingCluster
from runtender.local.ticker import TICK_PERIOD, Ticker
from runtender.local.vm.guest import Network
from runtender.local.vm.runner import VmRunner
from runtender.settings import Settings

_MARKERS = "runs/status/"


class LocalCloud(AbstractContextManager["LocalCloud"]):
    """A running local cloud with its data in `folder`.

    Times pass `time_scale` times faster than on Google Cloud. `environment` is what points a client in another process at
    it; `store`, `topics`, `objects` and `clock` are the ports for this one. Raises `LocalCloudError` where the functions or
    the backend do not start.
    """

    def __init__(
        self,
        folder: Path,
        *,
        logs: Path,
        scenario: Scenario = FAIR,
        time_scale: float = 1.0,
        backend: BackendName = BackendName.EMBEDDED,
    ) -> None:
        for path in (folder, logs):
            path.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.scenario = scenario
        project = project_of(backend, folder, os.environ)
        self._plane = plane_settings(
            time_scale, scenario.plane, regions=scenario.regions, backend=backend.value, project=project
        )
        self.settings = Settings.from_env(self._plane)
        with ExitStack() as parts:
            self._open(parts, logs, backend)
            self._parts = parts.pop_all()

    def _open(self, parts: ExitStack, logs: Path, backend: BackendName) -> None:
        """Open all parts, each after those that it calls; they are closed the other way round."""
        scale = self.settings.time_scale
        authority = LocalAuthority.create(self.folder / "certificates")
        self.functions = FunctionsProcess(functions_source(), logs / "functions.log")
        parts.callback(self.functions.close)
        self._weather = weather = Weather(self.scenario, self.settings, self.functions)
        now = weather.clock.now
        self.backend = self._backend(backend, logs)
        parts.callback(self.backend.close)
        self.objects_server = parts.enter_context(ObjectServer(self._objects(), authority=authority, now=now))
        secrets = parts.enter_context(SecretServer(self.folder.parent / "secrets", authority=authority))
        compute = self._compute()
        self.compute_server = parts.enter_context(ComputeServer(compute, authority=authority, now=now))
        self.machines = self._machines(authority, secrets)
        parts.callback(self.machines.close)
        # Before the machines are ended, so that none boots meanwhile.
        parts.callback(self.compute_server.close)
        self.cluster = parts.enter_context(self._cluster(secrets))
        parts.enter_context(weather)
        weather.begin(
            core=compute,
            compute=self.compute_server,
            objects=self.objects_server,
            machines=self.machines,
            cluster=self.cluster,
        )
        self.compute_server.run(self._apply)
        self.cluster.run(weather.saw_pod)
        self.addresses = Addresses(
            storage=self.objects_server.url,
            compute=self.compute_server.url,
            container=self.cluster.container_url,
            functions=self.functions.url,
            cluster_roots=self.cluster.roots_file,
        )
        self._open_ports(parts)
        parts.callback(self.functions.close)
        self.functions.start({**clean_environment(os.environ), **self.environment, "PYTHONUNBUFFERED": "1"})
        ticks = Ticker(self.backend.publish, self.settings.tick_topic, period=TICK_PERIOD / scale, now=now)
        parts.enter_context(ticks)

    def _open_ports(self, parts: ExitStack) -> None:
        """Connect a client of each service, for whoever uses the cloud from this process, and fill the buckets."""
        self.environment: Mapping[str, str] = plane_environment(
            self._plane, self.addresses, self.backend.variables
        )
        session = parts.enter_context(requests.Session())
        session.trust_env = False
        self.clock = SystemClock()
        self.store = self.backend.store
        self.topics = self.backend.topics
        self.objects = StorageObjects(session, self.addresses.storage, clock=self.clock)
        self.objects.put(
            WAREHOUSE_BUCKET, FLIGHTS_OBJECT, FLIGHTS_PANEL.read_bytes(), content_type="application/gzip"
        )
        if self.scenario.regions:
            catalogue = places(self.settings.project, self.scenario.regions)
            self.objects.put(CODE_BUCKET, PLACES_OBJECT, json.dumps(catalogue).encode())

    def _backend(self, name: BackendName, logs: Path) -> Backend:
        return open_backend(
            name,
            folder=self.folder,
            logs=logs,
            settings=self.settings,
            functions_url=self.functions.url,
            arrivals=self._weather.arrivals,
            faults=self._weather.fault,
            now=self._weather.clock.now,
        )

    def _objects(self) -> ObjectsCore:
        core = ObjectsCore(
            bodies=DiskBodies(self.folder / "objects"),
            on_finalize=self._finalized,
            faults=self._weather.fault,
        )
        markers = Notification(topic=self.settings.marker_topic, prefix=_MARKERS)
        core.make_bucket(CODE_BUCKET, self._weather.clock.now(), [markers])
        core.make_bucket(WAREHOUSE_BUCKET, self._weather.clock.now())
        return core

    def _machines(self, authority: LocalAuthority, secrets: SecretServer) -> VmRunner:
        assert self.objects_server.tls_port is not None  # noqa: S101  # it was given an authority
        network = Network(
            storage_tls_port=self.objects_server.tls_port,
            compute_tls_port=self.compute_server.tls_port,
            secrets_tls_port=secrets.tls_port,
            storage_url=self.objects_server.url,
            ca_file=authority.ca_file,
        )
        return VmRunner(
            root=self.folder / "machines",
            network=network,
            reports=self.compute_server,
            scale=self.settings.time_scale,
        )

    def _cluster(self, secrets: SecretServer) -> StandingCluster:
        return StandingCluster(
            folder=self.folder,
            project=self.settings.project,
            region=self.settings.region,
            nodes=self.scenario.cluster.nodes,
            variables={"STORAGE_EMULATOR_HOST": self.objects_server.url, **secrets.variables},
            scale=self.settings.time_scale,
            faults=self._weather.fault,
            now=self._weather.clock.now,
        )

    def _finalized(self, topic: str, body: bytes, attributes: Mapping[str, str], now: datetime) -> None:
        self._weather.stored(attributes["objectId"])
        self.backend.publish(topic, body, attributes, now)

    def _compute(self) -> ComputeCore:
        return ComputeCore(
            project=self.settings.project,
            timings=Timings().scaled(self.settings.time_scale),
            stock=self._weather.stock,
            quotas=self._weather.quotas,
            schemas=installed_schemas(),
            faults=self._weather.fault,
        )

    def _apply(self, event: Event) -> None:
        self.machines.apply(event)
        self._weather.saw(event)

    def calls(self) -> dict[str, int]:
        """Return how often each method of the simulated APIs was called, by its id."""
        return {
            **self.compute_server.counts(),
            **self.objects_server.counts(),
            **self.cluster.counts(),
        }

    def events(self) -> dict[str, int]:
        """Return how many events each function has handled."""
        delivered = self.backend.delivered()
        topics = (self.settings.submit_topic, self.settings.marker_topic, self.settings.tick_topic)
        return {name: delivered[f"{topic}-push"] for name, topic in zip(ENTRY_POINTS, topics, strict=True)}

    def leftovers(self) -> dict[str, int]:
        """Count what is still there of the runs: in the simulated project and its cluster, and as processes of both."""
        strangers = self._weather.strangers
        left = self.compute_server.leftovers(strangers)
        return {
            "instances": len(left.instances),
            "disks": len(left.disks),
            "operations": len(left.operations),
            "machine_processes": self.machines.processes(strangers),
            **self.cluster.leftovers(strangers),
        }

    def inserts(self) -> int:
        """Count the machines of the plane's whose insert was ever accepted."""
        return len({*self.compute_server.inserted()} - self._weather.strangers)

    def insert_calls(self) -> tuple[str, ...]:
        """Return the zones of all calls that were to make a machine, in order, however they were answered."""
        return self._weather.insert_calls

    def strangers(self) -> int:
        """Count the machines and Jobs of strangers that are there, and that nobody has touched."""
        strangers = self._weather.strangers
        machines = self.compute_server.machines()
        found = sum(one.id in strangers and not one.removal for one in machines)
        return found + self.cluster.untouched_jobs(strangers)

    def close(self) -> None:
        """End everything that runs in the cloud, and then the cloud. May be called twice."""
        self._parts.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
