"""The table of permissions by itself: it is whole, what is written from it is up to date, and it grants too little to harm."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from runtender.permissions.__main__ import generated
from runtender.permissions.bindings import BINDINGS, RBAC
from runtender.permissions.identities import CALLERS, WHO, Grant, Identity
from runtender.permissions.needs import KUBERNETES, NEEDS, Where
from runtender.permissions.pages import roles, rules

ROOT = Path(__file__).parents[3]


def permissions_of(identity: Identity, *places: Where) -> set[str]:
    return {
        permission
        for (owner, where), permissions in roles().items()
        if owner is identity and (not places or where in places)
        for permission in permissions
    }


@pytest.mark.parametrize("name", generated())
def test_what_is_generated_is_up_to_date(name):
    assert (ROOT / name).read_text() == generated()[name], "run `make permissions`"


def test_every_call_is_somebodys_and_every_place_is_bound():
    called = {grant.call for grants in CALLERS.values() for grant in grants if isinstance(grant, Grant)}
    assert called == NEEDS.keys()
    assert {where for _, where in roles()} == BINDINGS.keys() == set(Where) - KUBERNETES
    assert {where for _, where in rules()} == RBAC.keys() == KUBERNETES
    assert CALLERS.keys() == WHO.keys() == set(Identity)


def test_every_permission_says_why():
    assert [key for key, permissions in roles().items() if not all(permissions.values())] == []


@pytest.mark.parametrize("identity", Identity)
def test_no_permission_administers_anything(identity):
    administers = re.compile(
        r"\*|[sS]etIamPolicy|\.update$|Keys\.|admin|\.undelete|getAccessToken|signBlob|signJwt"
    )
    found = {one for one in permissions_of(identity) if administers.search(one)}
    assert found - {"datastore.entities.update"} == set()


@pytest.mark.parametrize("identity", Identity)
def test_nobody_can_change_or_delete_a_marker(identity):
    reaching_markers = (Where.PROJECT, Where.STATUS_BUCKET, Where.MARKERS, Where.CODE_BUCKET, Where.LOGS)
    assert "storage.objects.delete" not in permissions_of(identity, *reaching_markers)


def test_where_configs_are_replaced_no_marker_and_no_log_lies():
    condition = BINDINGS[Where.CONFIGS].condition
    for folder in ("runs/status/", "runs/logs/"):
        assert f"!resource.name.startsWith('projects/_/buckets/$code_bucket/objects/{folder}')" in condition


def test_the_worker_writes_new_objects_and_nothing_else_that_stays():
    changing = {
        one for one in permissions_of(Identity.WORKER) if one.rpartition(".")[2] not in {"get", "access"}
    }
    assert changing == {
        "artifactregistry.repositories.downloadArtifacts",
        "compute.instances.delete",
        "logging.logEntries.create",
        "storage.objects.create",
    }


@pytest.mark.parametrize("identity", Identity)
def test_only_machines_and_disks_of_our_name_are_deleted(identity):
    for permission in ("compute.instances.delete", "compute.disks.delete"):
        places = {
            where for (owner, where), held in roles().items() if owner is identity and permission in held
        }
        assert all("startsWith('sf-')" in BINDINGS[where].condition for where in places)


@pytest.mark.parametrize("identity", Identity)
def test_the_only_account_that_anything_runs_as_is_the_workers(identity):
    acting = {
        where
        for (owner, where), held in roles().items()
        if owner is identity and "iam.serviceAccounts.actAs" in held
    }
    assert acting <= {Where.WORKER_ACCOUNT}


def test_a_role_id_is_one_that_iam_takes():
    names = [f"{identity}_{where}" for identity, where in roles()]
    assert [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_.]{3,50}", name)] == []
