"""The modules as text: nothing undeclared, unused, undescribed or unknown to the provider. Needs no Terraform."""

from __future__ import annotations

import pytest

FOLDERS = (
    "examples/complete",
    "examples/minimal",
    "modules/control-plane",
    "modules/gke",
    "modules/worker",
)


def test_every_folder_is_looked_at(checker):
    assert [path.relative_to(checker.INFRA).as_posix() for path in checker.folders()] == list(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_nothing_is_wrong_with(checker, schema, folder):
    assert checker.faults(checker.load(checker.INFRA / folder), schema) == []


def test_the_schema_holds_what_the_modules_use_and_nothing_else(checker, schema):
    modules = [checker.load(path) for path in checker.folders()]
    for kind, used in (
        ("resources", {address.split(".")[0] for module in modules for address in module.resources}),
        ("data", {address.split(".")[0] for module in modules for address in module.data}),
    ):
        assert set(schema[kind]) == used


def test_every_module_asks_for_the_same_versions(checker):
    asked = [checker.load(path).settings for path in checker.folders()]
    assert all(settings == asked[0] for settings in asked)


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        pytest.param(
            "modules/worker/network.tf",
            "local.subnets",
            "local.nets",
            "local.nets is not declared",
            id="local",
        ),
        pytest.param(
            "modules/worker/network.tf", "var.nat", "var.gnat", "var.gnat is not declared", id="variable"
        ),
        pytest.param(
            "modules/worker/network.tf",
            "google_compute_network.workers.id",
            "google_compute_network.worker.id",
            "google_compute_network.worker is not declared",
            id="resource",
        ),
        pytest.param(
            "modules/control-plane/services.tf",
            'data "google_project" "this"',
            'data "google_project" "that"',
            "data.google_project.this is not declared",
            id="data",
        ),
        pytest.param(
            "modules/worker/network.tf",
            "google_compute_network.workers.id",
            "google_compute_network.workers.ident",
            "google_compute_network.workers exports no ident",
            id="attribute that is not exported",
        ),
        pytest.param(
            "modules/control-plane/subscriptions.tf",
            "service_config[0].uri",
            "service_config[0].uri\n    attribute = {}",
            "takes no attribute",
            id="argument of a nested block",
        ),
        pytest.param(
            "modules/control-plane/buckets.tf",
            "name                        = local.status_bucket",
            "",
            "google_storage_bucket.status needs name",
            id="missing argument",
        ),
        pytest.param(
            "modules/control-plane/firestore.tf",
            "ttl_config {}",
            'ttl_config {\n    state = "ON"\n  }',
            "google_firestore_field.expiry.ttl_config: state cannot be set",
            id="argument that only the provider sets",
        ),
        pytest.param(
            "modules/control-plane/functions.tf",
            'dynamic "direct_vpc_network_interface"',
            'dynamic "vpc"',
            "takes no block vpc",
            id="dynamic block",
        ),
        pytest.param(
            "modules/control-plane/scheduler.tf",
            "google_cloud_scheduler_job",
            "google_cloud_scheduler",
            "its type is not in provider_schema.json",
            id="type of a resource",
        ),
        pytest.param(
            "modules/worker/variables.tf",
            'description = "The Google Cloud project."',
            "",
            "variable project_id has no description",
            id="variable without a description",
        ),
        pytest.param(
            "modules/gke/variables.tf",
            "  type        = string\n}",
            "}",
            "has no type",
            id="variable without a type",
        ),
        pytest.param(
            "modules/worker/variables.tf",
            'variable "nat"',
            'variable "z"',
            "variables do not stand from A to Z",
            id="order",
        ),
        pytest.param(
            "modules/worker/outputs.tf",
            'description = "Full name of the workers\' network."',
            "",
            "output network has no description",
            id="output without a description",
        ),
        pytest.param(
            "modules/worker/variables.tf",
            'variable "nat" {',
            'variable "more" {\n  description = "x"\n  type = bool\n}\n\nvariable "nat" {',
            "variable more is not used",
            id="variable that nothing uses",
        ),
        pytest.param(
            "modules/worker/locals.tf",
            "locals {",
            "locals {\n  more = 1",
            "local more is not used",
            id="local that nothing uses",
        ),
        pytest.param(
            "examples/minimal/main.tf",
            "bundle     = var.bundle",
            "zip        = var.bundle",
            "module control_plane takes no zip",
            id="argument of a module",
        ),
        pytest.param(
            "examples/minimal/main.tf",
            "  worker     = module.worker\n",
            "",
            "module control_plane needs worker",
            id="missing argument of a module",
        ),
        pytest.param(
            "examples/minimal/outputs.tf",
            "module.worker.registry",
            "module.worker.images",
            "module.worker has no output images",
            id="output of a module",
        ),
        pytest.param(
            "examples/minimal/main.tf",
            "../../modules/worker",
            "../../modules/workers",
            "there is no ../../modules/workers",
            id="source of a module",
        ),
        pytest.param(
            "modules/gke/nodes.tf",
            "roles/container.defaultNodeServiceAccount",
            "roles/editor",
            "has a primitive role",
            id="primitive role",
        ),
        pytest.param(
            "modules/gke/nodes.tf",
            "google_service_account.nodes.member",
            '"allUsers"',
            "has access for everybody",
            id="everybody",
        ),
        pytest.param(
            "modules/worker/versions.tf",
            ", < 2.0.0",
            "",
            "need a lower and an upper bound",
            id="version without an upper bound",
        ),
    ],
)
def test_a_fault_is_seen(checker, schema, copy, file, before, after, told):
    path = copy / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    found = [
        fault for folder in checker.folders(copy) for fault in checker.faults(checker.load(folder), schema)
    ]
    assert any(told in fault for fault in found), found
