"""A cluster on real time and real sockets: certificates, streams, and an orderly end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from runtender.local.http import DROPPED, Fault, LocalAuthority
from runtender.local.http.server import thread_name
from runtender.local.kubernetes.core import KubernetesCore
from runtender.local.kubernetes.events import Event, PodStarted
from runtender.local.kubernetes.server import KubernetesServer
from runtender.local.kubernetes.timings import Timings

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[LocalAuthority, LocalAuthority]:
    """The cluster's own authority, and the root that its name is known by."""
    folder = tmp_path_factory.mktemp("authorities")
    return LocalAuthority.create(folder / "own", hosts=["kubernetes"]), LocalAuthority.create(
        folder / "public", hosts=["localhost"]
    )


@pytest.fixture
def faults() -> list[Fault]:
    """What the next calls are answered instead, last first."""
    return []


@pytest.fixture
def server(authorities, faults) -> Iterator[KubernetesServer]:
    core = KubernetesCore(
        born=datetime.now(UTC),
        timings=Timings().scaled(100),
        faults=lambda _method, _request: faults.pop() if faults else None,
    )
    with KubernetesServer(core, own=authorities[0], public=authorities[1]) as served:
        yield served


@contextmanager
def client(ca_file: Path) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.verify = str(ca_file)
        # A bundle that the environment names would count instead.
        session.trust_env = False
        yield session


def until(holds, seconds: float = 10) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("address", "authority"), [("endpoint", 0), ("dns_endpoint", 1)])
def test_each_address_is_known_by_its_own_root_alone(server, authorities, address, authority) -> None:
    url = f"https://{getattr(server, address)}/version"

    with client(authorities[authority].ca_file) as session:
        assert session.get(url, timeout=10).json()["major"] == "1"
    with client(authorities[1 - authority].ca_file) as session, pytest.raises(requests.exceptions.SSLError):
        session.get(url, timeout=10)


def test_a_pod_lives_on_real_time(server, authorities) -> None:
    seen: list[Event] = []
    server.run(seen.append)
    container = {"name": "worker", "image": "registry/worker:1"}
    pod = {"metadata": {"name": "p"}, "spec": {"restartPolicy": "Never", "containers": [container]}}

    with client(authorities[0].ca_file) as session:
        url = f"https://{server.endpoint}{PODS}"
        assert session.post(url, json=pod, timeout=10).status_code == 201
        until(lambda: seen)
        (started,) = seen
        assert isinstance(started, PodStarted)
        server.pod_started(started.uid)
        server.pod_log(started.uid, b"hello\n")
        server.pod_exited(started.uid, 0)

        assert session.get(f"{url}/p", timeout=10).json()["status"]["phase"] == "Succeeded"
        assert session.get(f"{url}/p/log", timeout=10).text == "hello\n"


def test_a_watch_tells_changes_as_they_come_and_ends_with_the_server(server, authorities) -> None:
    with client(authorities[0].ca_file) as session:
        url = f"https://{server.endpoint}/api/v1/namespaces/default/configmaps"
        with session.get(url, params={"watch": "true"}, stream=True, timeout=10) as watch:
            lines = watch.iter_lines()
            session.post(url, json={"metadata": {"name": "a"}}, timeout=10)
            assert json.loads(next(lines))["object"]["metadata"]["name"] == "a"
            session.post(url, json={"metadata": {"name": "b"}}, timeout=10)
            assert json.loads(next(lines))["object"]["metadata"]["name"] == "b"

            server.close()
            assert list(lines) == []


def test_a_watch_whose_client_hangs_up_leaves_nothing_behind(server, authorities) -> None:
    def threads() -> int:
        port = int(server.endpoint.rpartition(":")[2])
        return sum(thread.name == thread_name(port) for thread in threading.enumerate())

    before = threads()
    with client(authorities[0].ca_file) as session:
        url = f"https://{server.endpoint}{PODS}"
        watch = session.get(url, params={"watch": "true"}, stream=True, timeout=10)
        assert threads() > before
        watch.close()

    until(lambda: threads() == before)


def test_a_dropped_connection_has_no_answer(server, authorities, faults) -> None:
    faults.append(Fault(answer=DROPPED))

    with client(authorities[0].ca_file) as session:
        with pytest.raises(requests.ConnectionError):
            session.get(f"https://{server.endpoint}{PODS}", timeout=10)
        assert session.get(f"https://{server.endpoint}{PODS}", timeout=10).status_code == 200


def test_a_client_that_says_nothing_holds_up_nobody(server, authorities) -> None:
    host, port = server.endpoint.split(":")

    with socket.create_connection((host, int(port))), client(authorities[0].ca_file) as session:
        assert session.get(f"https://{server.endpoint}/healthz", timeout=5).text == "ok"


def test_a_body_may_come_in_pieces(server, authorities) -> None:
    with client(authorities[0].ca_file) as session:
        url = f"https://{server.endpoint}/api/v1/namespaces/default/configmaps"
        pieces = iter([b'{"metadata": ', b'{"name": "a"}}'])

        assert session.post(url, data=pieces, timeout=10).status_code == 201


def test_a_server_may_be_closed_twice(server) -> None:
    server.close()
    server.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(server.endpoint.partition(":")[2])))
