"""Terraform's own opinion of the modules: format, types, references, conditions, and their own tests.

The provider is a stand-in that knows the schema in `provider_schema.json`, so what is held here is that the modules are right
by that schema. Nothing is planned against a project.
"""

from __future__ import annotations

import pytest

FOLDERS = (
    "examples/complete",
    "examples/minimal",
    "modules/control-plane",
    "modules/gke",
    "modules/worker",
)


def test_the_files_are_formatted(terraform, copy):
    told = terraform.run(copy, "fmt", "-check", "-recursive", "-diff", "-no-color")
    assert told.returncode == 0, told.stdout


def test_a_file_that_is_not_formatted_is_seen(terraform, copy):
    (copy / "modules/worker/locals.tf").write_text("locals {\n prefix   = 1\n}\n")
    assert terraform.run(copy, "fmt", "-check", "-recursive").returncode != 0


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_is_valid_and_its_own_tests_pass(terraform, copy, folder):
    module = terraform.ready(copy / folder)
    valid = terraform.run(module, "validate", "-no-color")
    assert valid.returncode == 0, valid.stdout
    tested = terraform.run(module, "test", "-no-color")
    assert tested.returncode == 0, tested.stdout
    assert " 0 failed" in tested.stdout


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        pytest.param(
            "worker/network.tf",
            "auto_create_subnetworks =",
            "auto_create_subnets =",
            "Unsupported argument",
            id="an argument that the provider does not know",
        ),
        pytest.param(
            "worker/account.tf", "account_id ", "disabled ", "Missing required", id="a missing argument"
        ),
        pytest.param(
            "worker/network.tf", "priority           = 65000", 'priority = "low"', "number", id="a wrong type"
        ),
        pytest.param(
            "control-plane/locals.tf",
            "var.worker.service_account_email",
            "var.worker.account",
            "does not have an attribute",
            id="a field that a variable's type does not have",
        ),
        pytest.param(
            "worker/outputs.tf",
            "service_account.worker.email",
            "service_account.worker.mail",
            "Unsupported attribute",
            id="an attribute that the provider does not export",
        ),
        pytest.param(
            "control-plane/topics.tf",
            "depends_on = [google_kms_crypto_key_iam_member.agent, google_project_service.needed]",
            "depends_on = [google_cloudfunctions2_function.plane]",
            "Cycle",
            id="resources that wait for each other",
        ),
    ],
)
def test_terraform_sees(terraform, copy, file, before, after, told):
    path = copy / "modules" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    answer = terraform.run(terraform.ready(path.parent), "validate", "-no-color")
    assert answer.returncode != 0
    assert told in answer.stdout


def test_a_role_on_a_place_that_no_file_binds_stops_the_plan(terraform, copy):
    module = copy / "modules/control-plane"
    roles = module / "permissions.json"
    roles.write_text(roles.read_text().replace('"tick_subnets"', '"tick_moon"'))
    answer = terraform.run(terraform.ready(module), "test", "-no-color")
    assert "has a role on 'moon'" in answer.stdout
