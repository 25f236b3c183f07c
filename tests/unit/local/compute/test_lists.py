"""Lists: filters, pages, zones that do not answer; and what a console shows."""

from __future__ import annotations

import pytest

from runtender.local.compute.errors import ApiError
from runtender.local.compute.listing import parse_filter
from runtender.local.compute.serial import KEPT_BYTES

OURS = '(labels.sf-plane = "main") (labels.sf-kind = "vm")'
MACHINE = {
    "name": "sf-vm",
    "targetId": "17",
    "status": "RUNNING",
    "labels": {"sf-plane": "main", "sf-kind": "vm"},
    "scheduling": {"preemptible": True},
}
FILTERS = {
    "a bare value": ("name=sf-vm", True),
    "a quoted value": ('name = "sf-vm"', True),
    "another value": ("name=other", False),
    "a label": ("labels.sf-plane=main", True),
    "an absent label": ("labels.nope=main", False),
    "not equal": ("name != other", True),
    "not equal to what is absent": ("labels.nope != x", True),
    "both": ('labels.sf-plane="main" AND labels.sf-kind="vm"', True),
    "both, one wrong": ('labels.sf-plane="main" AND labels.sf-kind="disk"', False),
    "side by side": (OURS, True),
    "either": ("status=STOPPING OR status=RUNNING", True),
    "or binds tighter than and": ("status=RUNNING OR name=other AND name=nobody", False),
    "not": ("NOT status=RUNNING", False),
    "parentheses": ("(status=STOPPING OR (name=sf-vm)) AND labels.sf-kind=vm", True),
    "has a label": ("labels.sf-kind:*", True),
    "lacks a label": ("labels.other:*", False),
    "a truth value": ("scheduling.preemptible=true", True),
    "a regular expression": ("name eq sf-.*", True),
    "a regular expression that must match all": ("name eq sf-", False),
    "not a regular expression": ("name ne sf-.*", False),
    "a number": ("targetId=17", True),
}
BAD_FILTERS = [
    "name",
    "name=",
    "=x",
    "(name=x",
    "name=x)",
    "name ~ x",
    "name eq [",
    "name > x",
    "AND",
    "name=x OR",
]


@pytest.mark.parametrize(("text", "found"), FILTERS.values(), ids=FILTERS)
def test_a_filter_finds_what_it_says(text, found):
    assert parse_filter(text)(MACHINE) is found


@pytest.mark.parametrize("text", BAD_FILTERS)
def test_a_filter_that_cannot_be_read_is_refused(text):
    with pytest.raises(ApiError, match="Invalid list filter expression"):
        parse_filter(text)


def test_pages_hold_every_machine_once_though_the_list_changes_meanwhile(project):
    for number in range(5):
        project.insert(f"vm-{number}")
    seen, token = [], ""
    while True:
        query = {"maxResults": "2"} | ({"pageToken": token} if token else {})
        _, page = project.call("GET", "zones/us-central1-a/instances", **query)
        seen += [machine["name"] for machine in page.get("items", [])]
        token = page.get("nextPageToken", "")
        project.delete("vm-1")
        project.wait(7)
        if not token:
            break
    assert seen == [f"vm-{number}" for number in range(5)]


def test_the_project_list_goes_zone_by_zone_and_warns_of_empty_ones(project):
    project.insert("a")
    project.insert("b", zone="us-central1-b")
    _, body = project.call("GET", "aggregated/instances", filter=OURS)
    found = {
        zone: [m["name"] for m in scope["instances"]]
        for zone, scope in body["items"].items()
        if "instances" in scope
    }
    assert found == {"zones/us-central1-a": ["a"], "zones/us-central1-b": ["b"]}
    codes = {scope["warning"]["code"] for scope in body["items"].values() if "warning" in scope}
    assert (codes, "unreachables" in body) == ({"NO_RESULTS_ON_PAGE"}, False)


def test_the_project_list_has_pages_too(project):
    project.insert("a")
    project.insert("b", zone="us-central1-b")
    _, first = project.call("GET", "aggregated/instances", maxResults="1")
    _, second = project.call("GET", "aggregated/instances", maxResults="1", pageToken=first["nextPageToken"])
    assert "instances" in first["items"]["zones/us-central1-a"]
    assert "instances" in second["items"]["zones/us-central1-b"]
    assert "nextPageToken" not in second


def test_a_zone_that_does_not_answer_makes_the_list_partial(project):
    project.insert("a")
    project.core.silence({"us-central1-a"})
    _, body = project.call("GET", "aggregated/instances")
    assert body["unreachables"] == ["https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a"]
    assert body["items"]["zones/us-central1-a"]["warning"]["code"] == "UNREACHABLE"


def test_an_empty_list_has_no_items(project):
    assert "items" not in project.call("GET", "zones/us-central1-a/instances")[1]


@pytest.mark.parametrize("size", ["-1", "501", "many"])
def test_a_page_size_out_of_range_is_refused(project, size):
    assert project.call("GET", "zones/us-central1-a/instances", maxResults=size)[0] == 400


def test_a_strange_page_token_is_refused(project):
    assert project.call("GET", "zones/us-central1-a/instances", pageToken="%%%")[0] == 400


def test_operations_come_newest_first_where_asked(project):
    project.insert("a")
    project.wait(20)
    project.insert("b")
    _, body = project.call("GET", "zones/us-central1-a/operations", orderBy="creationTimestamp desc")
    assert [operation["targetLink"][-1] for operation in body["items"]] == ["b", "a"]


def test_the_zones_are_listed(project):
    _, body = project.call("GET", "zones")
    assert "us-central1-f" in {zone["name"] for zone in body["items"]}


def test_a_console_keeps_its_end_and_counts_every_byte(project):
    _, operation = project.insert()
    machine = operation["targetId"]
    project.core.print_serial(machine, b"x" * KEPT_BYTES)
    project.core.print_serial(machine, b"end\xff")
    path = "zones/us-central1-a/instances/sf-vm/serialPort"
    _, whole = project.call("GET", path)
    assert (whole["start"], whole["next"], whole["contents"][-4:]) == ("4", str(KEPT_BYTES + 4), "end\ufffd")
    _, tail = project.call("GET", path, start="-4", port="1")
    assert (tail["contents"], tail["start"]) == ("end\ufffd", str(KEPT_BYTES))
    _, later = project.call("GET", path, start=whole["next"])
    assert later["contents"] == ""
    assert project.call("GET", path, port="2")[1]["contents"] == ""
    assert project.call("GET", path, port="9")[0] == 400


def test_a_console_is_gone_with_its_machine(project):
    _, operation = project.insert()
    project.core.print_serial(operation["targetId"], b"hello")
    project.wait(15)
    project.delete()
    project.wait(200)
    assert project.call("GET", "zones/us-central1-a/instances/sf-vm/serialPort")[0] == 404
    project.core.print_serial(operation["targetId"], b"too late")
