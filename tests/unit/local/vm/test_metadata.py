"""What a machine can ask its metadata server."""

from __future__ import annotations

import json
import threading

import pytest

from runtender.local.compute.events import Booted
from runtender.local.http import HttpRequest
from runtender.local.vm.metadata import MetadataServer

ACCOUNT = "worker@p.iam.gserviceaccount.com"


def a_server(*, service_account: str | None = ACCOUNT) -> MetadataServer:
    return MetadataServer(
        Booted(
            instance_id="17",
            project="p",
            zone="us-central1-a",
            name="sf-vm",
            boot=1,
            metadata={"startup-script": "true", "google-logging-enabled": "true"},
            service_account=service_account,
            gpus=0,
        )
    )


def ask(server, path, *, flavor="Google", **query):
    request = HttpRequest(
        method="GET",
        path=f"/computeMetadata/v1/{path}",
        query=query,
        headers={"metadata-flavor": flavor} if flavor else {},
    )
    return server.handle(request)


VALUES = {
    "instance/name": "sf-vm",
    "instance/id": "17",
    "instance/zone": "projects/123456789012/zones/us-central1-a",
    "instance/preempted": "FALSE",
    "instance/attributes/startup-script": "true",
    "instance/attributes/": "startup-script\ngoogle-logging-enabled\n",
    "instance/service-accounts/": f"default/\n{ACCOUNT}/\n",
    "instance/service-accounts/default/email": ACCOUNT,
    "instance/service-accounts/default/scopes": "https://www.googleapis.com/auth/cloud-platform",
    "project/project-id": "p",
    "": "instance/\nproject/\n",
}


@pytest.mark.parametrize(("path", "value"), VALUES.items(), ids=VALUES)
def test_a_machine_learns_who_and_where_it_is(path, value):
    answer = ask(a_server(), path)
    assert (answer.status, answer.body.decode(), answer.headers["Metadata-Flavor"]) == (200, value, "Google")


def test_the_token_names_the_machine():
    answer = ask(a_server(), "instance/service-accounts/default/token")
    assert json.loads(answer.body) == {
        "access_token": "local-worker-sf-vm",
        "expires_in": 3599,
        "token_type": "Bearer",
    }


def test_an_account_is_shown_whole_but_for_its_token():
    answer = ask(a_server(), "instance/service-accounts/default/", recursive="true")
    assert json.loads(answer.body) == {
        "aliases": ["default"],
        "email": ACCOUNT,
        "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
    }


@pytest.mark.parametrize(
    "path", ["instance/service-accounts/default/token", "instance/nothing", "instance/name/x"]
)
def test_what_is_not_there_is_404(path):
    assert ask(a_server(service_account=None), path).status == 404


@pytest.mark.parametrize("flavor", ["", "Amazon"])
def test_a_request_without_the_header_is_refused(flavor):
    assert ask(a_server(), "instance/name", flavor=flavor).status == 403


def test_who_waits_for_a_change_gets_it():
    server, answers = a_server(), []
    tag = ask(server, "instance/preempted").headers["ETag"]
    query = {"wait_for_change": "true", "last_etag": tag}
    waiter = threading.Thread(target=lambda: answers.append(ask(server, "instance/preempted", **query)))
    waiter.start()
    server.preempt()
    waiter.join(10)
    assert [answer.body for answer in answers] == [b"TRUE"]


def test_who_waits_too_long_gets_what_there_is():
    answer = ask(a_server(), "instance/preempted", wait_for_change="true", timeout_sec="0")
    assert answer.body == b"FALSE"


def test_closing_lets_everybody_go():
    server, answers = a_server(), []
    waiter = threading.Thread(
        target=lambda: answers.append(ask(server, "instance/preempted", wait_for_change="true"))
    )
    waiter.start()
    server.close()
    waiter.join(10)
    assert [answer.body for answer in answers] == [b"FALSE"]
