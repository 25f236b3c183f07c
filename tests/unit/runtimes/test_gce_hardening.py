"""A machine boots what is signed, lets in nobody by a project's key, and has its disk under the deployment's own key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runtender.runtimes.gce_vm import GceVm

KEY = "projects/p/locations/{region}/keyRings/r/cryptoKeys/k"


@pytest.fixture
def body_of(a_job, a_row, settings):
    """Render a machine's body; arguments change the settings."""

    def build(**changes):
        return GceVm().create(a_job(), a_row(), replace(settings, **changes)).body or {}

    return build


def metadata_of(body):
    return {item["key"]: item["value"] for item in body["metadata"]["items"]}


def test_a_machine_is_shielded(body_of, faults_in):
    body = body_of()
    assert body["shieldedInstanceConfig"] == {
        "enableSecureBoot": True,
        "enableVtpm": True,
        "enableIntegrityMonitoring": True,
    }
    assert faults_in(body, "Instance") == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enable-oslogin", "TRUE"),
        ("block-project-ssh-keys", "TRUE"),
        ("serial-port-enable", "false"),
        ("serial-port-logging-enable", "true"),
    ],
)
def test_nobody_comes_in_but_by_iam(body_of, key, value):
    assert metadata_of(body_of())[key] == value


def test_no_machine_can_be_reached_from_outside_or_reaches_out_by_an_address_of_its_own(body_of):
    (interface,) = body_of()["networkInterfaces"]
    assert {"accessConfigs", "ipv6AccessConfigs"} & interface.keys() == set()
    assert "canIpForward" not in body_of()


def test_without_a_key_the_disk_is_encrypted_by_googles_own(body_of):
    assert "diskEncryptionKey" not in body_of()["disks"][0]


@pytest.mark.parametrize(
    ("key", "named"),
    [
        pytest.param(KEY, KEY.replace("{region}", "us-central1"), id="of the machine's region"),
        pytest.param(
            KEY.replace("{region}", "us"), KEY.replace("{region}", "us"), id="of a place of its own"
        ),
    ],
)
def test_the_disk_is_encrypted_with_the_deployments_key(body_of, faults_in, key, named):
    body = body_of(kms_key=key)
    assert body["disks"][0]["diskEncryptionKey"] == {"kmsKeyName": named}
    assert faults_in(body, "Instance") == []
