"""The life of a job on a standing cluster, from its submit until nothing is left of it."""

from __future__ import annotations

import json

import pytest

from runtender.local.http import Fault, HttpResponse, json_response

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "spec": {
        "completions": 1,
        "completionMode": "Indexed",
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
    },
}


def word_of_the_plane(world):
    name = f"runs/status/{world.key}/{world.row['nonce']}/job.terminal.json"
    return json.loads(world.objects.read("code", name, limit=10**5))


class TestWell:
    def test_workers_that_do_well_are_settled_at_the_last_ones_word(self, at_work):
        for index in range(4):
            at_work.end_worker(index)
        at_work.pass_time(1)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")
        assert at_work.job["indexes"]["completed"] == "0-3"
        at_work.tick(3)
        assert at_work.job["phase"] == "DONE"
        assert at_work.is_clean

    @pytest.mark.parametrize("deletes", [pytest.param(1, id="acceptance-D25")])
    def test_its_job_is_deleted_once_and_the_cluster_never(self, at_work, deletes):
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick(20)
        assert at_work.job["phase"] == "DONE"
        assert at_work.calls()["kubernetes.jobs.delete"] == deletes
        assert {method.rpartition(".")[2] for method in at_work.gke.counts()} <= {"get", "list"}

    def test_a_status_that_is_there_before_the_event_settles_at_once(self, at_work):
        at_work.events = False
        for index in range(3):
            at_work.end_worker(index)
        at_work.end_worker(3, tells=False)
        at_work.summarise(3)
        at_work.events = True
        at_work.mark(3, "terminal", status="SUCCEEDED", exit_code=0)
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_lost_events_are_made_good_by_the_next_tick(self, at_work):
        at_work.events = False
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_a_task_needs_neither_markers_nor_summaries(self, gke):
        gke.submit_task()
        gke.tick(3)
        assert gke.job["phase"] == "RUNNING"
        for index in range(4):
            gke.end_worker(index, tells=False)
        gke.tick()
        assert gke.end == ("SUCCEEDED", "Completed")
        gke.tick(3)
        assert (gke.job["phase"], gke.is_clean) == ("DONE", True)

    @pytest.mark.parametrize((), [pytest.param(id="acceptance-Z19")])
    def test_its_phases_are_measured_from_this_run_on_a_cluster_that_is_months_old(self, at_work):
        at_work.pass_time(100)
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick()
        platform = at_work.job["telemetry"]["platform"]
        assert 0 < platform["provision_s"] < 60
        assert 100 <= platform["execute_s"] < 200
        assert platform["total_wall_s"] < 300

    def test_it_keeps_the_words_that_others_know_it_by(self, at_work):
        telemetry = at_work.job["telemetry"]
        name = at_work.row["name"]
        assert telemetry["probe_handle"]["native_id"] == name
        place = "projects/p/locations/us-central1-a/clusters/standing/namespaces/default"
        assert telemetry["probe_handle"]["resource_name"] == f"{place}/jobs/{name}"
        assert telemetry["gke_job"]["worker_count"] == 4


class TestFailures:
    def test_an_index_that_fails_for_good_leaves_the_results_of_the_others(self, at_work):
        at_work.kubernetes.pod_log(at_work.pods[3].uid, b"out of series\n", at_work.clock.now())
        at_work.end_worker(3, 7)
        for index in range(3):
            at_work.end_worker(index)
        at_work.tick(4)
        assert at_work.end == ("PARTIAL", "FailedIndexes")
        assert at_work.job["detail"].startswith("index 3 failed (4 workers); ")
        assert (at_work.job["summary"]["n_ok"], at_work.job["summary"]["complete"]) == (6, False)
        kept = at_work.objects.read(
            "code", f"runs/logs/{at_work.key}/{at_work.row['nonce']}/pods.log", limit=10**6
        )
        assert b"--- pod " in kept
        assert b"out of series" in kept
        assert at_work.is_clean

    def test_a_worker_that_was_evicted_is_made_good(self, at_work):
        at_work.kubernetes.evict("default", at_work.pods[2].name, at_work.clock.now())
        at_work.pass_time(30)
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_one_that_always_fails_fails_alone_and_all_that_fail_fail_the_job(self, at_work):
        for index in range(4):
            at_work.end_worker(index, 9)
        at_work.tick()
        assert at_work.end == ("FAILED", "ExitCode")
        assert "exit_code=9" in at_work.job["detail"]

    def test_workers_without_memory_say_so(self, at_work):
        for index in range(4):
            at_work.kubernetes.pod_exited(at_work.pods[index].uid, 137, at_work.clock.now(), oom=True)
        at_work.tick()
        assert at_work.end == ("FAILED", "OutOfMemory")

    def test_an_image_that_is_not_there_ends_the_run_in_minutes(self, gke):
        gke.kubernetes.miss_image("us-docker.pkg.dev/p/r/worker:1")
        gke.submit()
        gke.tick(8)
        assert gke.end == ("FAILED", "ImagePull")
        assert gke.is_clean

    def test_a_run_past_its_limit_is_ended(self, gke):
        gke.submit(limits={"run": "10m"})
        gke.tick(14)
        assert gke.end == ("TIMED_OUT", "RunTimeout")
        assert gke.is_clean


class TestRoom:
    def test_waiting_for_room_takes_nothing_from_the_run(self, a_cluster_world):
        world = a_cluster_world(nodes=0)
        world.submit(limits={"run": "10m", "capacity_wait": "30m"})
        world.tick(12)
        assert (world.job["phase"], world.job["deadlines"]["run"]) == ("PROVISIONING", None)
        for _ in range(4):
            world.kubernetes.add_node("default-pool", world.clock.now())
        world.tick(9)
        assert world.job["phase"] == "RUNNING"
        for index in range(4):
            world.end_worker(index)
        world.tick()
        assert world.end == ("SUCCEEDED", "Completed")

    def test_without_room_it_ends_with_the_patience_for_capacity(self, a_cluster_world):
        world = a_cluster_world(nodes=0)
        world.submit(limits={"capacity_wait": "15m"})
        world.tick(13)
        assert world.job["outcome"] is None
        world.tick(6)
        assert world.end == ("NO_CAPACITY", "Unschedulable")
        assert world.is_clean

    def test_some_workers_at_work_are_enough_to_go_on(self, a_cluster_world):
        world = a_cluster_world(nodes=2)
        world.submit(limits={"capacity_wait": "15m"})
        world.tick(20)
        assert (world.job["phase"], world.job["outcome"]) == ("RUNNING", None)
        for index in (0, 1):
            world.end_worker(index)
        world.tick()
        for index in (2, 3):
            world.end_worker(index)
        world.tick()
        assert world.end == ("SUCCEEDED", "Completed")


class TestCancel:
    @pytest.mark.parametrize("nodes", [0, 4], ids=["while it waits for room", "while it runs"])
    def test_it_ends_the_workers_and_leaves_the_planes_word(self, a_cluster_world, nodes):
        world = a_cluster_world(nodes=nodes)
        world.submit()
        world.tick()
        world.cancel()
        assert world.end == ("CANCELLED", "Cancelled")
        word = word_of_the_plane(world)
        assert (word["writer"], word["reason"]) == ("plane", "Cancelled")
        world.tick(4)
        assert (world.job["phase"], world.is_clean) == ("DONE", True)

    def test_a_job_that_has_just_finished_is_not_cancelled(self, at_work):
        at_work.events = False
        for index in range(4):
            at_work.end_worker(index)
        at_work.cancel()
        assert at_work.end == ("SUCCEEDED", "Completed")


class TestStrangers:
    @pytest.mark.parametrize((), [pytest.param(id="acceptance-Z14")])
    def test_a_job_that_somebody_deletes_is_settled_as_deleted(self, at_work):
        at_work.apply("DELETE", at_work.job_path, {"propagationPolicy": "Background"})
        at_work.tick(13)
        assert at_work.end == ("FAILED", "JobDeleted")
        assert (at_work.job["phase"], at_work.is_clean) == ("DONE", True)

    def test_one_whose_pods_were_left_behind_is_not_done_before_they_are_gone(self, at_work):
        at_work.apply("DELETE", at_work.job_path, {"propagationPolicy": "Orphan"})
        assert at_work.kubernetes.documents("pods")
        at_work.tick(14)
        assert at_work.end == ("FAILED", "JobDeleted")
        assert (at_work.job["phase"], at_work.is_clean) == ("DONE", True)

    def test_one_that_a_finalizer_holds_is_not_done_before_it_is_gone(self, at_work):
        at_work.apply("PATCH", at_work.job_path, {"metadata": {"finalizers": ["example.com/audit"]}})
        at_work.cancel()
        at_work.tick(20)
        assert (at_work.end[0], at_work.job["phase"]) == ("CANCELLED", "STOPPING")
        at_work.apply("PATCH", at_work.job_path, {"metadata": {"finalizers": None}})
        at_work.tick(12)
        assert (at_work.job["phase"], at_work.is_clean) == ("DONE", True)

    @pytest.mark.parametrize("kind", ["forecast", "task"])
    @pytest.mark.parametrize((), [pytest.param(id="acceptance-Z13")])
    def test_a_finished_job_of_the_same_name_is_not_this_runs_result(self, a_cluster_world, kind):
        probe = a_cluster_world()
        submit = type(probe).submit if kind == "forecast" else type(probe).submit_task
        submit(probe)
        world = a_cluster_world()
        labels = {"sf-plane": "main", "sf-key": "e" * 16, "sf-nonce": "f" * 16}
        theirs = {**JOB, "metadata": {"name": probe.row["name"], "labels": labels}}
        world.apply("POST", "/apis/batch/v1/namespaces/default/jobs", theirs)
        world.pass_time(10)
        for pod in list(world.pods.values()):
            world.kubernetes.pod_exited(pod.uid, 0, world.clock.now())
        world.pass_time(5)
        submit(world)
        assert world.end == ("FAILED", "ConfigFault")
        assert "belongs to somebody else" in world.job["detail"]
        world.tick(2)
        assert world.job["phase"] == "DONE"
        assert world.kubernetes.leftovers().jobs == (f"default/{probe.row['name']}",)


class TestTrouble:
    def test_one_answer_that_says_nothing_changes_nothing(self, at_work):
        at_work.fail("jobs.get")
        at_work.end_worker(0)
        assert at_work.refused["kubernetes.jobs.get"]
        assert at_work.end == (None, None)
        at_work.faults.clear()
        for index in range(1, 4):
            at_work.end_worker(index)
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_a_cluster_that_is_down_for_minutes_costs_no_run(self, at_work, no_answer):
        at_work.fail(fault=no_answer)
        for index in range(4):
            at_work.end_worker(index)
        at_work.tick(5)
        assert at_work.end == (None, None)
        at_work.faults.clear()
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    def test_a_cluster_that_is_gone_takes_its_jobs_along(self, at_work, no_answer):
        at_work.gke.remove("us-central1-a", "standing")
        at_work.fail(fault=no_answer)
        at_work.tick(14)
        assert at_work.end == ("FAILED", "JobDeleted")
        assert at_work.job["phase"] == "DONE"

    def test_summaries_that_cannot_be_read_are_waited_for(self, at_work):
        at_work.events = False
        for index in range(4):
            at_work.end_worker(index)
        at_work.objects.broken = {"wh"}
        at_work.tick(3)
        assert at_work.end == (None, None)
        at_work.objects.broken = set()
        at_work.tick()
        assert at_work.end == ("SUCCEEDED", "Completed")

    @pytest.mark.parametrize(
        "answer",
        [
            json_response(200, {"items": [], "metadata": {"continue": "more"}}),
            HttpResponse(status=404, body=b"<html>not here</html>"),
            HttpResponse(status=403),
        ],
        ids=["an empty page of more", "somebody on the way", "forbidden"],
    )
    def test_pods_that_no_whole_list_shows_to_be_gone_may_be_there(self, at_work, answer):
        for index in range(4):
            at_work.end_worker(index)
        at_work.fail("pods.list", fault=Fault(answer=answer))
        at_work.tick(5)
        assert (at_work.end[0], at_work.job["phase"]) == ("SUCCEEDED", "STOPPING")
        at_work.faults.clear()
        at_work.tick(12)
        assert at_work.job["phase"] == "DONE"

    @pytest.mark.parametrize("after", [29, 30], ids=["two that take long", "one that takes all there is"])
    def test_logs_that_do_not_come_do_not_keep_the_job_from_going(self, at_work, after):
        """A node that is gone answers for its pods only when a call's time is up."""
        at_work.fail("pods.log.get", after=after)
        at_work.cancel()
        assert at_work.refused["kubernetes.pods.log.get"] <= 2
        assert at_work.calls()["kubernetes.jobs.delete"] == 1
        at_work.tick(4)
        assert (at_work.end[0], at_work.job["phase"]) == ("CANCELLED", "DONE")
