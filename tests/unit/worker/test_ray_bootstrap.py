"""The program that starts Ray in a pod: whom it waits for, what it gives up on, and that its text stands alone."""

from __future__ import annotations

import ast
import socket
import subprocess
import sys

import pytest

from runtender.worker.ray_bootstrap import NODES_MISSING, RayError, await_nodes, load, resolve_head
from runtender.worker.source import ray_source


def test_the_text_needs_nothing_of_the_package():
    tree = ast.parse(ray_source())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [module for module in imported if module and module.startswith("runtender")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["driver", "--package-uri", "nowhere"], "is not gs://BUCKET/NAME.zip", id="no package"),
        pytest.param(["stage", "--package-uri", "gs://b", "--folder", "."], "is not gs://", id="no object"),
    ],
)
def test_it_ends_with_2_when_there_is_nothing_to_call(arguments, words):
    command = [sys.executable, "-c", ray_source(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_head_that_answers_is_known_by_its_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert resolve_head(f"localhost:{port}") == f"127.0.0.1:{port}"


def test_a_head_that_never_answers_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RayError, match="no Ray head") as gone:
        resolve_head(f"127.0.0.1:{port}", patience_s=0)
    assert gone.value.status == NODES_MISSING


@pytest.mark.parametrize("address", ["", "head", "head:", ":6379"])
def test_an_address_needs_host_and_port(address):
    with pytest.raises(RayError, match="not HOST:PORT"):
        resolve_head(address)


def test_a_run_does_not_start_on_fewer_nodes_than_it_was_planned_for():
    with pytest.raises(RayError, match="2 of 4 Ray nodes joined") as missing:
        await_nodes(4, lambda: 2, patience_s=0)
    assert missing.value.status == NODES_MISSING


def test_it_goes_on_as_soon_as_all_nodes_are_there(capsys):
    await_nodes(3, lambda: 3)
    assert "3 of 3 nodes" in capsys.readouterr().out


@pytest.mark.parametrize("entrypoint", ["json", ":dumps", "json:", "json:nothing"])
def test_an_entry_point_names_a_function(entrypoint):
    with pytest.raises(RayError, match="entry point"):
        load(entrypoint)


def test_an_entry_point_is_found():
    assert load("json:dumps")(["a"]) == '["a"]'
