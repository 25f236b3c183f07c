"""Who may do what: Terraform binds every role of the table, where and under the condition that the reviewer's page says."""

from __future__ import annotations

import re
from string import Template

import kubernetes_validate
import pytest
import yaml

from runtender.permissions.bindings import BINDINGS
from runtender.permissions.identities import CALLERS
from runtender.permissions.needs import Where
from runtender.permissions.pages import roles, rules

WORDS = {
    "project": "plane-tests",
    "database": "(default)",
    "status_bucket": "plane-tests-sf-status",
    "code_bucket": "plane-tests-sf-code",
    "results_bucket": "warehouse",
    "results_folder": "forecasts/artifacts",
}


@pytest.fixture
def bound(values):
    """Each binding of a role from the table, by the role's name."""
    names = {
        value["role_id"]: value["index"]
        for address, value in values.items()
        if address.startswith("google_project_iam_custom_role.")
    }
    found: dict[str, list] = {}
    for address, value in values.items():
        kind, _, rest = address.partition(".")
        index = str(value["index"] or "").split(" ")[0]
        if kind.endswith("_iam_member") and index in names.values():
            found.setdefault(index, []).append((kind, rest, value))
    return found


def test_every_role_of_the_table_is_bound(bound):
    assert set(bound) == {f"{identity}_{where}" for identity, where in roles()}


def test_every_role_has_the_permissions_of_the_table(values):
    made = {
        value["index"]: set(value["permissions"])
        for address, value in values.items()
        if address.startswith("google_project_iam_custom_role.")
    }
    assert made == {
        f"{identity}_{where}": set(permissions) for (identity, where), permissions in roles().items()
    }


@pytest.mark.parametrize("where", list(BINDINGS), ids=str)
def test_a_role_holds_under_the_condition_that_the_page_says(bound, where):
    condition = Template(BINDINGS[where].condition).substitute(WORDS)
    holders = [f"{identity}_{where}" for identity in CALLERS if f"{identity}_{where}" in bound]
    assert holders
    for name in holders:
        for _, _, value in bound[name]:
            told = [each["expression"] for each in value.get("condition") or ()]
            assert told == ([condition] if condition else [])


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("project", "google_project_iam_member"),
        ("markers", "google_storage_bucket_iam_member"),
        ("worker_account", "google_service_account_iam_member"),
        ("pusher_account", "google_service_account_iam_member"),
        ("subnets", "google_compute_subnetwork_iam_member"),
        ("notify_topic", "google_pubsub_topic_iam_member"),
        ("subscriptions", "google_pubsub_subscription_iam_member"),
        ("services", "google_cloud_run_v2_service_iam_member"),
        ("repository", "google_artifact_registry_repository_iam_member"),
        ("secrets", "google_secret_manager_secret_iam_member"),
        ("disk_key", "google_kms_crypto_key_iam_member"),
    ],
)
def test_a_role_is_bound_beside_its_resource(bound, place, kind):
    kinds = {
        each for name, bindings in bound.items() if name.endswith(f"_{place}") for each, _, _ in bindings
    }
    assert kinds == {kind}


def test_every_identity_of_the_table_is_somebody(checker):
    plane = checker.load(checker.INFRA / "modules/control-plane")
    assert set(plane.locals["identities"]) == {str(identity) for identity in CALLERS}


def test_roles_that_are_not_from_the_table_are_few_and_predefined(values):
    others = {
        (address.partition("[")[0], value["role"])
        for address, value in values.items()
        if "_iam_member" in address
        and "google_project_iam_custom_role" not in value["role"]
        and value["role"].startswith("roles/")
    }
    assert others == {
        ("google_artifact_registry_repository_iam_member.builder", "roles/artifactregistry.writer"),
        ("google_kms_crypto_key_iam_member.agent", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        ("google_project_iam_member.builder_logs", "roles/logging.logWriter"),
        ("google_project_iam_member.builder_source", "roles/storage.objectViewer"),
    }


# --- the standing cluster


@pytest.fixture
def manifest(checker):
    text = (checker.INFRA / "modules/gke/rbac.yaml.tftpl").read_text()
    words = {"kubernetes_account": "runtender-worker", "namespace": "default", "worker": "worker@example.com"}
    filled = re.sub(
        r"\$\{([\w.]+)\}",
        lambda found: words.get(found[1], f"{found[1].rpartition('.')[2]}@example.com"),
        text,
    )
    return list(yaml.safe_load_all(filled))


def test_the_manifest_is_what_kubernetes_knows(manifest):
    kinds = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]
    assert [each["kind"] for each in manifest] == kinds
    for each in manifest:
        kubernetes_validate.validate(each, "1.34", strict=True)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        pytest.param("Role", Where.NAMESPACE, id="in the workers' namespace"),
        pytest.param("ClusterRole", Where.ALL_NAMESPACES, id="in all of them"),
    ],
)
def test_a_cluster_allows_what_the_table_lists_to_whom_it_lists(manifest, kind, where):
    (role,) = (each for each in manifest if each["kind"] == kind)
    (binding,) = (each for each in manifest if each["kind"] == f"{kind}Binding")
    allowed = {
        f"{group}/{resource}:{verb}".removeprefix("/")
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    listed = {identity: set(held) for (identity, place), held in rules().items() if place is where}
    assert {subject["name"] for subject in binding["subjects"]} == {f"{name}@example.com" for name in listed}
    assert all(held == allowed for held in listed.values())
