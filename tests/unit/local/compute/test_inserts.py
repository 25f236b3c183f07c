"""What an insert is answered: taken, taken once, refused, or failed in its operation."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.compute.events import Booted
from runtender.local.compute.quotas import Quotas
from runtender.local.compute.schema import installed_schemas
from runtender.local.http import DROPPED, Fault
from runtender.local.scenario import Shape, Stockout

DRY = Stockout(zone="us-central1-a")


def reason(body):
    return body["error"]["errors"][0]["reason"]


def test_a_repeated_request_id_gives_the_same_operation_and_one_machine(project):
    first = project.insert(request=1)[1]
    project.wait(5)
    code, second = project.insert(request=1)
    assert (code, second["name"], second["clientOperationId"][-1]) == (200, first["name"], "1")
    assert project.core.leftovers().instances == ("sf-vm",)


def test_a_repeated_request_id_gives_a_failed_operation_again(a_project):
    project = a_project(stockouts=(Stockout(first=1),))
    first = project.insert(request=1)[1]
    project.wait(10)
    again = project.insert(request=1)[1]
    assert again["name"] == first["name"]
    assert again["error"]["errors"][0]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert project.status() == "404"


def test_a_request_id_is_forgotten_after_thirty_minutes(project):
    project.insert(request=1)
    project.wait(1801)
    assert project.insert(request=1)[0] == 409


def test_another_request_id_for_a_name_that_is_taken_is_a_conflict(project):
    project.insert(request=1)
    code, body = project.insert(request=2)
    assert (code, reason(body)) == (409, "alreadyExists")
    assert (
        body["error"]["message"]
        == "The resource 'projects/p/zones/us-central1-a/instances/sf-vm' already exists"
    )


def test_names_are_unique_per_zone_only(project):
    project.insert(request=1)
    other = "us-central1-b"
    assert project.insert(zone=other, request=2)[0] == 200


@pytest.mark.parametrize("bad", ["00000000-0000-0000-0000-000000000000", "no-uuid"])
def test_a_request_id_must_be_a_uuid(project, bad):
    code, _ = project.call("DELETE", "zones/us-central1-a/instances/x", requestId=bad)
    assert code == 400


def test_a_stock_out_lets_the_machine_be_seen_and_then_vanish(a_project):
    project = a_project(
        stockouts=(Stockout(zone="us-central1-a", zones_available=("us-central1-b", "us-central1-f")),)
    )
    _, operation = project.insert()
    assert project.status() == "PROVISIONING"
    project.wait(7)
    done = project.operation(operation)
    error = done["error"]["errors"][0]
    assert (done["httpErrorStatusCode"], error["code"]) == (503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS")
    info = next(detail["errorInfo"] for detail in error["errorDetails"] if "errorInfo" in detail)
    assert info["metadatas"]["zonesAvailable"] == "us-central1-b,us-central1-f"
    assert project.status() == "404"
    left = project.core.leftovers()
    assert (left.instances, left.disks, left.operations) == ((), (), ())


def test_a_stock_out_can_be_told_at_once(a_project):
    project = a_project(stockouts=(Stockout(shape=Shape.HTTP),))
    code, body = project.insert()
    assert (code, reason(body)) == (503, "ZONE_RESOURCE_POOL_EXHAUSTED")
    assert project.status() == "404"


def test_a_late_stock_out_stops_the_machine_before_it_was_up(a_project):
    project = a_project(stockouts=(Stockout(shape=Shape.LATE),))
    _, operation = project.insert()
    project.wait(5)
    assert (project.operation(operation)["status"], project.status()) == ("DONE", "STOPPING")
    project.wait(10)
    assert project.status() == "TERMINATED"
    assert not [event for event in project.events if isinstance(event, Booted)]
    assert project.history(operation["targetId"]) == ["insert"]


MATCHES = {
    "everything": (Stockout(), True),
    "the zone": (DRY, True),
    "another zone": (Stockout(zone="us-central1-b"), False),
    "the region": (Stockout(region="us-central1"), True),
    "the placement": (Stockout(placement=0), True),
    "another placement": (Stockout(placement=1), False),
    "the attempt": (Stockout(attempt=1), True),
    "another attempt": (Stockout(attempt=2), False),
    "not yet": (Stockout(after=timedelta(seconds=1)), False),
    "no longer": (Stockout(until=timedelta(0)), False),
    "the first none": (Stockout(first=0), False),
}


@pytest.mark.parametrize(("stockout", "hit"), MATCHES.values(), ids=MATCHES)
def test_a_stock_out_hits_what_the_scenario_says(a_project, stockout, hit):
    project = a_project(stockouts=(stockout,))
    _, operation = project.insert()
    project.wait(20)
    assert ("error" in project.operation(operation)) == hit


def test_a_stock_out_ends_after_its_number_and_its_time(a_project):
    project = a_project(stockouts=(Stockout(first=1), Stockout(until=timedelta(minutes=10))), scale=10)
    failed = [project.insert(f"vm-{n}")[1] for n in range(2)]
    project.wait(60)
    taken = project.insert("vm-2")[1]
    project.wait(20)
    assert ["error" in project.operation(one) for one in (*failed, taken)] == [True, True, False]


def test_quota_of_the_region_fails_the_operation(a_project):
    project = a_project(quotas=Quotas(regional={"N2_CPUS": 12}))
    project.insert("one")
    _, operation = project.insert("two")
    error = operation["error"]["errors"][0]
    assert (operation["status"], error["code"]) == ("DONE", "QUOTA_EXCEEDED")
    assert error["message"] == "Quota 'N2_CPUS' exceeded.  Limit: 12.0 in region us-central1."
    assert project.core.leftovers().instances == ("one",)


def test_quota_of_another_region_is_untouched(a_project):
    project = a_project(quotas=Quotas(regional={"N2_CPUS": 12}))
    project.insert("one")
    network = [{"subnetwork": "projects/p/regions/us-east1/subnetworks/default"}]
    assert "error" not in project.insert("two", zone="us-east1-b", networkInterfaces=network)[1]


def test_the_projects_quota_of_accelerators_counts_all_regions(a_project):
    project = a_project(quotas=Quotas(gpus_all_regions=1))
    project.insert("one", machine="g2-standard-8")
    _, operation = project.insert("two", machine="g2-standard-8")
    assert "GPUS_ALL_REGIONS" in operation["error"]["errors"][0]["message"]


def test_usage_is_shown_and_given_back(project):
    def usage(metric):
        rows = project.call("GET", "regions/us-central1")[1]["quotas"]
        return next(row["usage"] for row in rows if row["metric"] == metric)

    project.insert()
    assert (usage("N2_CPUS"), usage("SSD_TOTAL_GB"), usage("CPUS")) == (8, 100, 0)
    project.wait(15)
    project.delete()
    project.wait(200)
    assert usage("N2_CPUS") == 0


def test_spot_accelerators_use_the_preemptible_meter(project):
    project.insert(machine="g2-standard-8", spot=True)
    rows = {row["metric"]: row["usage"] for row in project.call("GET", "regions/us-central1")[1]["quotas"]}
    assert (rows["PREEMPTIBLE_NVIDIA_L4_GPUS"], rows["NVIDIA_L4_GPUS"]) == (1, 0)
    assert project.call("GET", "")[0] == 200


def changed(path, value):
    """Return a change of the insert body at a dotted path, as a function of the body."""

    def apply(body):
        *holders, last = path.split(".")
        for part in holders:
            body = body[int(part)] if part.isdigit() else body[part]
        if value is None:
            del body[last]
        else:
            body[last] = value

    return apply


REFUSED = {
    "no name": ("name", None, "required", "resource.name"),
    "a bad name": ("name", "Bad_Name", "invalid", "resource.name"),
    "no machine type": ("machineType", None, "required", "resource.machineType"),
    "an unknown machine type": ("machineType", "zones/us-central1-a/machineTypes/n2-standard-7", "invalid", "does not exist"),
    "a machine type of another zone": ("machineType", "zones/us-east1-b/machineTypes/n2-standard-8", "invalid", "machineType"),
    "no disk": ("disks", [], "required", "resource.disks"),
    "no image": ("disks.0.initializeParams.sourceImage", None, "required", "sourceImage"),
    "a disk too small": ("disks.0.initializeParams.diskSizeGb", "5", "invalid", "diskSizeGb"),
    "an unknown disk type": ("disks.0.initializeParams.diskType", "zones/us-central1-a/diskTypes/pd-huge", "notFound", "pd-huge"),
    "an empty subnetwork": ("networkInterfaces.0.subnetwork", "", "invalid", "subnetwork"),
    "a subnetwork of another region": (
        "networkInterfaces.0.subnetwork", "projects/p/regions/us-east1/subnetworks/default", "invalid", "region",
    ),
    "an upper-case label": ("labels.sf-plane", "Main", "invalid", "resource.labels"),
    "a run limit without an action": ("scheduling.instanceTerminationAction", None, "invalid", "instanceTerminationAction"),
    "a run limit too short": ("scheduling.maxRunDuration.seconds", "29", "invalid", "maxRunDuration"),
    "metadata too long": ("metadata.items.0.value", "x" * 262145, "uploadTooLarge", "262144"),
    "an accelerator on a machine that takes none": (
        "guestAccelerators",
        [{"acceleratorType": "zones/us-central1-a/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 1}],
        "invalid", "does not support accelerators",
    ),
    "an accelerator that the zone lacks": (
        "guestAccelerators",
        [{"acceleratorType": "zones/us-central1-a/acceleratorTypes/nvidia-x", "acceleratorCount": 1}],
        "notFound", "nvidia-x",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("path", "value", "why", "words"), REFUSED.values(), ids=REFUSED)
def test_a_body_that_google_refuses_is_refused(project, insert_body, path, value, why, words):
    changed(path, value)(insert_body)
    code, body = project.call("POST", "zones/us-central1-a/instances", insert_body)
    assert code in {400, 404, 413}
    assert (reason(body), words in body["error"]["message"]) == (why, True)
    assert project.core.leftovers().operations == ()


MISSHAPED = {
    "an unknown name": ("disk", [], "Unknown name \"disk\" at 'resource'"),
    "an unknown name further in": (
        "scheduling.maxRun",
        "1",
        "Unknown name \"maxRun\" at 'resource.scheduling'",
    ),
    "a wrong type": (
        "scheduling.automaticRestart",
        "no",
        "Invalid value at 'resource.scheduling.automaticRestart'",
    ),
    "a wrong enumeration": ("scheduling.onHostMaintenance", "STOP", "resource.scheduling.onHostMaintenance"),
    "an object for a text": ("machineType", {}, "resource.machineType"),
    "text for a number": ("disks.0.initializeParams.diskSizeGb", "big", "diskSizeGb"),
}


@pytest.mark.skipif(installed_schemas() is None, reason="google-api-python-client is not installed")
@pytest.mark.parametrize(("path", "value", "words"), MISSHAPED.values(), ids=MISSHAPED)
def test_a_body_against_the_published_schema_is_refused_by_its_path(project, insert_body, path, value, words):
    changed(path, value)(insert_body)
    code, body = project.call("POST", "zones/us-central1-a/instances", insert_body)
    assert (code, words in body["error"]["message"]) == (400, True)


@pytest.mark.skipif(installed_schemas() is None, reason="google-api-python-client is not installed")
def test_a_query_parameter_that_the_method_lacks_is_refused(project):
    code, body = project.call("GET", "zones/us-central1-a/instances", filters="x")
    assert (code, "filters" in body["error"]["message"]) == (400, True)


def test_a_machine_that_needs_hyperdisk_refuses_other_disks(project):
    code, body = project.insert(machine="n4-standard-8")
    assert (code, "pd-balanced" in body["error"]["message"]) == (400, True)


def test_accelerators_cannot_migrate(project):
    scheduling = {"onHostMaintenance": "MIGRATE"}
    assert project.insert(machine="g2-standard-8", scheduling=scheduling)[0] == 400


def test_an_unknown_zone_and_a_strange_project_are_refused(project):
    code, body = project.call("GET", "zones/us-nowhere1-z/instances")
    assert (code, body["error"]["message"]) == (
        400,
        "Invalid value for field 'zone': 'us-nowhere1-z'. Unknown zone.",
    )
    assert project.call("GET", "../q")[0] == 404


def test_a_body_that_is_no_json_is_refused(project):
    code, _ = project.call("POST", "zones/us-central1-a/instances", "text")
    assert code == 400


def test_a_fault_can_hide_an_insert_that_took_place(a_project):
    lost = {"compute.instances.insert": Fault(answer=DROPPED, applied=True)}
    project = a_project(faults=lambda method_id, _request: lost.pop(method_id, None))
    with pytest.raises(ValueError, match="Expecting value"):
        project.insert(request=1)
    assert project.status() == "PROVISIONING"
    assert project.insert(request=1)[0] == 200


def test_calls_are_counted_by_method(project):
    project.insert()
    project.get()
    project.get("nobody")
    assert project.core.counts() == {"compute.instances.insert": 1, "compute.instances.get": 2}


def test_operations_name_who_asked(project):
    assert project.insert()[1]["user"] == "runtender@p.iam.gserviceaccount.com"
