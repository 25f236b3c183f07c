"""The request body of a VM, and the names and texts that are derived for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from runtender.ids import disk_name, key_digest
from runtender.model import Job, Placement, Resource
from runtender.runtimes.gce_instance import instance_body, plan_json, probe_handle, resource_path

A_GPU = {
    "hardware": "gpu",
    "gpu_type": "L4",
    "machine_type": "g2-standard-8",
    "accelerator_type": "nvidia-l4",
    "accelerator_count": 1,
}


@pytest.fixture
def body_of(a_job: Callable[..., Job], a_row: Callable[..., Resource]) -> Callable[..., dict[str, Any]]:
    def build(**plan: Any) -> dict[str, Any]:
        return instance_body(a_job(**plan), a_row(), plane_id="main", startup_script="#!/bin/bash\n")

    return build


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C3")])
def test_the_platform_deletes_the_vm_by_itself_when_its_time_is_up(body_of: Callable[..., Any]) -> None:
    assert body_of()["scheduling"] == {
        "maxRunDuration": {"seconds": "3600"},
        "instanceTerminationAction": "DELETE",
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
        "provisioningModel": "STANDARD",
    }


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        pytest.param(timedelta(seconds=4500, milliseconds=1), "4501", id="a fraction is rounded up"),
        pytest.param(timedelta(seconds=3), "30", id="not below what the API takes"),
        pytest.param(timedelta(days=400), "10368000", id="not above what the API takes"),
    ],
)
def test_the_fence_is_whole_seconds_within_what_the_api_takes(
    body_of: Callable[..., Any], limit: timedelta, seconds: str
) -> None:
    assert body_of(max_run_duration=limit)["scheduling"]["maxRunDuration"] == {"seconds": seconds}


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C4")])
def test_the_vm_has_no_external_address(body_of: Callable[..., Any]) -> None:
    assert body_of()["networkInterfaces"] == [
        {"subnetwork": "projects/p/regions/us-central1/subnetworks/workers"}
    ]


@pytest.mark.parametrize(
    "placements",
    [
        pytest.param(
            (Placement(region="us-central1", zone="us-central1-b"),), id="the zone's subnet is empty"
        ),
        pytest.param(
            (Placement(region="us-east1", zone="us-east1-c", subnetwork_uri="s"),), id="another zone's"
        ),
    ],
)
def test_without_a_subnet_for_the_zone_none_is_named(
    body_of: Callable[..., Any], placements: tuple[Placement, ...]
) -> None:
    assert body_of(placements=placements)["networkInterfaces"] == [{}]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C5")])
def test_a_gpu_is_attached_and_its_vm_is_never_moved(body_of: Callable[..., Any]) -> None:
    body = body_of(**A_GPU)
    assert body["guestAccelerators"] == [
        {"acceleratorType": "zones/us-central1-b/acceleratorTypes/nvidia-l4", "acceleratorCount": 1}
    ]
    assert body["scheduling"]["onHostMaintenance"] == "TERMINATE"


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C6")])
def test_a_cpu_vm_names_no_accelerator(body_of: Callable[..., Any]) -> None:
    assert "guestAccelerators" not in body_of()


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C7")])
def test_without_a_service_account_none_is_named(body_of: Callable[..., Any]) -> None:
    assert "serviceAccounts" not in body_of()
    assert body_of(service_account="worker@p.iam.gserviceaccount.com")["serviceAccounts"] == [
        {
            "email": "worker@p.iam.gserviceaccount.com",
            "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        }
    ]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C8")])
def test_the_boot_disk_is_the_only_one_and_goes_with_the_vm(
    body_of: Callable[..., Any], a_row: Callable[..., Resource]
) -> None:
    body = body_of()
    (disk,) = body["disks"]
    assert (disk["boot"], disk["autoDelete"]) == (True, True)
    assert disk["initializeParams"] == {
        "diskName": disk_name(body["name"], a_row().nonce),
        "sourceImage": "projects/cos-cloud/global/images/family/cos-stable",
        "diskSizeGb": "100",
        "diskType": "zones/us-central1-b/diskTypes/pd-balanced",
        "labels": {**body["labels"], "sf-kind": "disk"},
    }


def test_the_labels_say_whose_the_vm_is(body_of: Callable[..., Any], a_row: Callable[..., Resource]) -> None:
    body = body_of(labels={"team": "demand", "sf-plane": "theirs"})
    assert body["labels"] == {
        "team": "demand",
        "run_id": "demand-0123456789ab",
        "runtime": "gce",
        "sf-plane": "main",
        "sf-kind": "vm",
        "sf-job": body["name"],
        "sf-key": key_digest("sf-demand-0123456789ab-statistical-a1"),
        "sf-nonce": a_row().nonce,
        "sf-attempt": "1",
        "sf-placement": "3",
    }


def test_the_console_is_logged(body_of: Callable[..., Any]) -> None:
    items = {item["key"]: item["value"] for item in body_of()["metadata"]["items"]}
    assert items["startup-script"] == "#!/bin/bash\n"
    assert (items["google-logging-enabled"], items["serial-port-logging-enable"]) == ("true", "true")


def test_a_spot_vm_is_asked_for_as_one_and_cannot_be_moved(body_of: Callable[..., Any]) -> None:
    scheduling = body_of(spot=True, on_host_maintenance="MIGRATE")["scheduling"]
    assert (scheduling["provisioningModel"], scheduling["onHostMaintenance"]) == ("SPOT", "TERMINATE")


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param({}, id="cpu"),
        pytest.param(A_GPU, id="gpu"),
        pytest.param({"spot": True, "service_account": "a@b", "labels": {"team": "x"}}, id="spot"),
    ],
)
def test_the_body_is_one_that_google_publishes(
    body_of: Callable[..., Any], faults_in: Callable[[Any, str], list[str]], plan: dict[str, Any]
) -> None:
    assert faults_in(body_of(**plan), "Instance") == []


def test_the_check_against_the_published_schema_can_fail(faults_in: Callable[[Any, str], list[str]]) -> None:
    body = {"nam": "x", "disks": [{"boot": "yes"}], "scheduling": {"instanceTerminationAction": "VANISH"}}
    assert [fault.split(":")[0] for fault in faults_in(body, "Instance")] == [
        "Instance.nam",
        "Instance.disks[0].boot",
        "Instance.scheduling.instanceTerminationAction",
    ]


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C9 acceptance-C30")])
def test_the_telemetry_has_the_keys_that_queries_depend_on(a_job: Callable[..., Job]) -> None:
    plan = a_job(**A_GPU, resource_plan={"runtime": "gce"}).plan
    assert plan_json(plan, plan.placements[0], "p") == {
        "instance_name": "sf-demand-0123456789ab-statistical-a1",
        "machine_type": "g2-standard-8",
        "accelerator_type": "nvidia-l4",
        "accelerator_count": 1,
        "hardware": "gpu",
        "gpu_type": "L4",
        "image_uri": "us-docker.pkg.dev/p/repo/worker:1",
        "package_uri": "gs://code/runs/worker-0badcafe.zip",
        "config_uri": "gs://code/runs/demand-0123456789ab.json",
        "subnetwork_uri": "projects/p/regions/us-central1/subnetworks/workers",
        "status_uri": "gs://status/runs/gce-status/sf-demand-0123456789ab-statistical-a1.json",
        "max_run_duration_seconds": 3600,
        "boot_disk_gb": 100,
        "resource_plan": {"runtime": "gce"},
        "region": "us-central1",
        "zone": "us-central1-b",
        "resource_path": "projects/p/zones/us-central1-b/instances/sf-demand-0123456789ab-statistical-a1",
    }


def test_without_a_status_bucket_there_is_no_status_uri(a_job: Callable[..., Job]) -> None:
    plan = a_job(status_bucket="").plan
    assert plan_json(plan, plan.placements[0], "p")["status_uri"] == ""


def test_the_probe_handle_finds_the_vm_again(a_job: Callable[..., Job]) -> None:
    plan = a_job(name="n").plan
    assert probe_handle(plan, Placement(region="us-east1", zone="us-east1-c"), "p") == {
        "runtime": "gce",
        "native_id": "n",
        "region": "us-east1",
        "id_kind": "exact",
        "resource_name": "projects/p/zones/us-east1-c/instances/n",
    }


@pytest.mark.parametrize((), [pytest.param(id="acceptance-C30")])
def test_the_resource_path_names_project_zone_and_vm() -> None:
    assert resource_path("p", "us-east1-c", "n") == "projects/p/zones/us-east1-c/instances/n"
