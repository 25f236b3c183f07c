"""Machines live and end as Compute Engine's do, on a clock that the test holds."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.compute.events import Booted, Halted, Removed, Stopping, StopReason


def test_a_machine_is_made_in_steps_and_the_insert_is_done_when_it_runs(project):
    code, operation = project.insert()
    assert (code, operation["status"], project.status()) == (200, "RUNNING", "PROVISIONING")
    project.wait(5)
    assert (project.operation(operation)["status"], project.status()) == ("RUNNING", "STAGING")
    project.wait(10)
    assert (project.operation(operation)["status"], project.status()) == ("DONE", "RUNNING")
    assert "error" not in project.operation(operation)


def test_booting_hands_over_what_the_machine_needs(project):
    _, operation = project.insert()
    project.wait(15)
    assert project.events == [
        Booted(
            instance_id=operation["targetId"],
            project="p",
            zone="us-central1-a",
            name="sf-vm",
            boot=1,
            metadata={"startup-script": "#!/bin/bash\ntrue\n"},
            service_account="worker@p.iam.gserviceaccount.com",
            gpus=0,
        )
    ]


def test_a_late_look_finds_every_step_at_its_own_time(project):
    project.insert()
    project.wait(1000)
    assert project.get()[1]["lastStartTimestamp"] == "2026-03-01T04:00:12.000-08:00"


def test_a_deleted_machine_stops_within_its_grace_and_then_is_gone_with_its_disk(project):
    _, inserted = project.insert()
    project.wait(15)
    _, deleted = project.delete()
    assert project.status() == "STOPPING"
    project.wait(119)
    assert project.status() == "STOPPING"
    project.wait(20)
    assert project.status() == "404"
    assert project.operation(deleted)["status"] == "DONE"
    assert project.call("GET", "zones/us-central1-a/disks/sf-vm-0123abcd")[0] == 404
    machine = inserted["targetId"]
    assert project.events[1:] == [
        Stopping(instance_id=machine, reason=StopReason.DELETED, grace=timedelta(seconds=120)),
        Halted(instance_id=machine),
        Removed(instance_id=machine),
    ]


def test_a_guest_that_is_off_early_shortens_the_stop(project):
    _, inserted = project.insert()
    project.wait(15)
    project.delete()
    project.core.guest_off(inserted["targetId"], 1, project.now)
    project.wait(7)
    assert project.status() == "404"


def test_a_guest_that_switches_itself_off_leaves_a_terminated_machine_and_its_disk(project):
    _, inserted = project.insert()
    project.wait(15)
    project.core.guest_off(inserted["targetId"], 1, project.now)
    assert project.status() == "TERMINATED"
    assert project.history(inserted["targetId"]) == ["insert", "compute.instances.guestTerminate"]
    project.delete()
    project.wait(7)
    assert project.status() == "404"
    assert project.core.leftovers().disks == ()


def test_the_run_limit_deletes_the_machine_by_itself(project):
    _, inserted = project.insert()
    project.wait(12 + 3600 - 1)
    assert project.status() == "RUNNING"
    project.wait(2)
    assert project.status() == "STOPPING"
    project.wait(200)
    assert project.status() == "404"
    assert project.history(inserted["targetId"]) == ["insert", "compute.instances.deferredDelete"]
    assert project.events[1] == Stopping(
        instance_id=inserted["targetId"], reason=StopReason.EXPIRED, grace=timedelta(seconds=120)
    )


def test_a_delete_in_time_disarms_the_run_limit(project):
    _, inserted = project.insert()
    project.wait(15)
    project.delete()
    project.wait(10_000)
    assert project.history(inserted["targetId"]) == ["insert", "delete"]


def test_a_machine_that_has_switched_itself_off_stays_so_beyond_its_run_limit(project):
    _, inserted = project.insert()
    project.wait(15)
    project.core.guest_off(inserted["targetId"], 1, project.now)
    project.wait(10_000)
    assert project.status() == "TERMINATED"
    assert project.history(inserted["targetId"]) == ["insert", "compute.instances.guestTerminate"]


def test_a_preempted_spot_machine_has_thirty_seconds(project):
    _, inserted = project.insert(spot=True)
    project.wait(15)
    assert project.core.preempt("us-central1-a", "sf-vm", project.now)
    project.wait(31)
    assert project.events[1:3] == [
        Stopping(instance_id=inserted["targetId"], reason=StopReason.PREEMPTED, grace=timedelta(seconds=30)),
        Halted(instance_id=inserted["targetId"]),
    ]
    project.wait(7)
    assert project.status() == "404"
    assert project.history(inserted["targetId"]) == ["insert", "compute.instances.preempted"]


def test_a_host_error_cuts_the_power_and_leaves_the_machine_terminated(project):
    _, inserted = project.insert()
    project.wait(15)
    assert project.core.host_error("us-central1-a", "sf-vm", project.now)
    assert project.status() == "TERMINATED"
    assert project.history(inserted["targetId"]) == ["insert", "compute.instances.hostError"]


def test_a_lost_machine_is_gone_at_once_with_its_disk_and_nothing_tells_of_it(project):
    _, inserted = project.insert()
    project.wait(15)
    assert project.core.lose("us-central1-a", "sf-vm", project.now)
    project.wait(0)
    assert project.status() == "404"
    assert project.core.leftovers().disks == ()
    assert project.history(inserted["targetId"]) == ["insert"]
    machine = inserted["targetId"]
    assert project.events[1:] == [Halted(instance_id=machine), Removed(instance_id=machine)]
    assert project.core.inserted() == (machine,), "it was made all the same"


def test_a_machine_that_may_restart_boots_a_second_time(project):
    scheduling = {"automaticRestart": True, "onHostMaintenance": "TERMINATE"}
    project.insert(scheduling=scheduling)
    project.wait(15)
    project.core.host_error("us-central1-a", "sf-vm", project.now)
    project.wait(10)
    boots = [event.boot for event in project.events if isinstance(event, Booted)]
    assert (project.status(), boots) == ("RUNNING", [1, 2])


def test_late_news_of_an_earlier_boot_do_not_stop_the_machine(project):
    _, inserted = project.insert(scheduling={"automaticRestart": True, "onHostMaintenance": "TERMINATE"})
    project.wait(15)
    project.core.host_error("us-central1-a", "sf-vm", project.now)
    project.wait(10)
    project.core.guest_off(inserted["targetId"], 1, project.now)
    assert project.status() == "RUNNING"


def test_only_a_running_machine_can_be_struck(project):
    project.insert()
    assert not project.core.preempt("us-central1-a", "sf-vm", project.now)
    assert not project.core.host_error("us-central1-a", "sf-nobody", project.now)


def test_a_machine_deleted_while_it_is_made_never_boots_and_its_insert_ends_with_409(project):
    _, inserted = project.insert()
    project.wait(5)
    project.delete()
    project.wait(20)
    operation = project.operation(inserted)
    assert (project.status(), operation["httpErrorStatusCode"]) == ("404", 409)
    assert [type(event) for event in project.events] == [Removed]


def test_every_delete_of_a_machine_is_done_when_it_is_gone(project):
    project.insert()
    project.wait(15)
    first, second = project.delete()[1], project.delete()[1]
    project.wait(200)
    assert first["name"] != second["name"]
    assert [project.operation(one)["status"] for one in (first, second)] == ["DONE", "DONE"]


def test_a_name_is_free_again_once_the_machine_is_gone(project):
    project.insert()
    project.wait(15)
    project.delete()
    assert project.insert()[0] == 409
    project.wait(200)
    assert project.insert()[0] == 200


def test_a_disk_of_the_name_is_attached_silently_and_survives_where_it_is_not_auto_deleted(project):
    body = {
        "boot": True,
        "autoDelete": False,
        "initializeParams": {"sourceImage": "projects/c/global/images/i"},
    }
    project.insert("keeper", disks=[body])
    project.wait(15)
    project.delete("keeper")
    project.wait(200)
    old = project.call("GET", "zones/us-central1-a/disks/keeper")[1]
    assert "users" not in old
    project.insert("keeper")
    assert project.call("GET", "zones/us-central1-a/disks/keeper")[1]["id"] == old["id"]


def test_a_disk_that_another_machine_holds_fails_the_insert(project):
    project.insert("first")
    taken = {"sourceImage": "projects/c/global/images/i", "diskName": "first-0123abcd"}
    _, operation = project.insert(
        "second", disks=[{"boot": True, "autoDelete": True, "initializeParams": taken}]
    )
    assert operation["error"]["errors"][0]["code"] == "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
    assert project.core.leftovers().instances == ("first",)


def test_a_disk_in_use_cannot_be_deleted_and_a_free_one_goes_after_a_while(project):
    project.insert(disks=[{"boot": True, "initializeParams": {"sourceImage": "projects/c/global/images/i"}}])
    path = "zones/us-central1-a/disks/sf-vm"
    code, body = project.call("DELETE", path)
    assert (code, body["error"]["errors"][0]["reason"]) == (400, "resourceInUseByAnotherResource")
    project.wait(15)
    project.delete()
    project.wait(200)
    code, operation = project.call("DELETE", path)
    assert (code, operation["status"]) == (200, "RUNNING")
    project.wait(7)
    assert project.call("GET", path)[0] == 404
    assert project.operation(operation)["status"] == "DONE"


def test_nothing_is_left_over_after_a_whole_life(project):
    project.insert()
    assert project.core.leftovers().instances == ("sf-vm",)
    project.wait(15)
    project.delete()
    project.wait(200)
    left = project.core.leftovers()
    assert (left.instances, left.disks, left.operations) == ((), (), ())
    assert project.core.next_due() is None or project.core.next_due() > project.now


@pytest.mark.parametrize("event", [Halted, Removed])
def test_a_machine_ends_once(project, event):
    _, inserted = project.insert()
    project.wait(15)
    project.delete()
    project.core.guest_off(inserted["targetId"], 1, project.now)
    project.wait(1000)
    project.core.guest_off(inserted["targetId"], 1, project.now)
    project.wait(1000)
    assert len([seen for seen in project.events if isinstance(seen, event)]) == 1
