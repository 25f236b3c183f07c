"""The guard that keeps tests on this machine really guards."""

from __future__ import annotations

import os
import socket

import pytest
import requests


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1", "example.invalid"])
def test_a_test_cannot_look_up_or_reach_another_machine(host: str) -> None:
    with pytest.raises(RuntimeError, match="loopback addresses only"):
        socket.create_connection((host, 80), timeout=1)


def test_a_library_cannot_reach_another_machine_either() -> None:
    with pytest.raises(RuntimeError, match=r"192\.0\.2\.1"):
        requests.get("http://192.0.2.1/", timeout=1)


def test_a_test_can_reach_a_server_of_its_own() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_the_callers_plane_is_not_seen() -> None:
    assert not [name for name in os.environ if name.startswith("SF_")]
