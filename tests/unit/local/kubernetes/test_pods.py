"""A pod's life on its node: what it waits for, how it ends, what it leaves behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.local.kubernetes.events import KillReason, PodKill, PodRemoved

PODS = "/api/v1/namespaces/default/pods"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"

SECRET_ENV = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]


def state_of(pod):
    """Return a pod's container's state and its reason."""
    ((kind, detail),) = pod["status"]["containerStatuses"][0]["state"].items()
    return kind, detail.get("reason", "")


def test_a_pod_goes_from_pending_to_succeeded(cluster, pod) -> None:
    cluster.create_pod(pod())
    assert cluster.pod()["status"] == {"phase": "Pending", "qosClass": "Burstable"}

    cluster.wait(2)
    assert state_of(cluster.pod()) == ("waiting", "ContainerCreating")
    assert cluster.pod()["spec"]["nodeName"] == "gke-standing-default-pool-0001"

    cluster.wait(8)
    found = cluster.pod()
    assert (found["status"]["phase"], state_of(found)[0]) == ("Running", "running")
    assert {"PodScheduled", "Initialized", "Ready"} <= set(cluster.conditions(found))

    cluster.core.pod_exited(cluster.started()[0].uid, 0, cluster.now)
    found = cluster.pod()
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (found["status"]["phase"], ended["reason"], ended["exitCode"]) == ("Succeeded", "Completed", 0)
    assert ended["startedAt"] < ended["finishedAt"] or ended["startedAt"] == ended["finishedAt"]
    assert cluster.reasons("p") == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]


@pytest.mark.parametrize(
    ("code", "oom", "reason"), [(3, False, "Error"), (137, True, "OOMKilled"), (137, False, "Error")]
)
def test_a_container_that_fails_says_how(cluster, pod, code, oom, reason) -> None:
    cluster.create_pod(pod())
    cluster.wait(10)

    cluster.core.pod_exited(cluster.started()[0].uid, code, cluster.now, oom=oom)

    found = cluster.pod()
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (found["status"]["phase"], ended["exitCode"], ended["reason"]) == ("Failed", code, reason)


def test_a_report_of_a_start_may_come_with_the_exit_alone(make_cluster, pod) -> None:
    cluster = make_cluster()
    cluster.create_pod(pod())
    cluster.now += timedelta(seconds=10)
    (started,) = cluster.core.advance(cluster.now)

    cluster.core.pod_exited(started.uid, 0, cluster.now)

    assert cluster.pod()["status"]["phase"] == "Succeeded"


def test_reports_of_what_is_over_change_nothing(cluster, pod) -> None:
    cluster.create_pod(pod())
    cluster.wait(10)
    uid = cluster.started()[0].uid
    cluster.core.pod_exited(uid, 0, cluster.now)
    before = cluster.pod()

    cluster.core.pod_exited(uid, 1, cluster.now)
    cluster.core.pod_started(uid, cluster.now)
    cluster.core.pod_exited("no-such-uid", 1, cluster.now)

    assert cluster.pod() == before


def test_a_missing_image_is_tried_again_until_it_is_there(cluster, pod) -> None:
    cluster.core.miss_image("registry/worker:1")
    cluster.create_pod(pod())

    cluster.wait(7)
    assert state_of(cluster.pod()) == ("waiting", "ErrImagePull")
    cluster.wait(2)
    assert state_of(cluster.pod()) == ("waiting", "ImagePullBackOff")
    assert cluster.pod()["status"]["phase"] == "Pending"
    cluster.wait(60)
    assert cluster.started() == []
    assert {"Failed", "BackOff"} <= set(cluster.reasons("p"))

    cluster.core.find_image("registry/worker:1")
    cluster.wait(60)
    assert cluster.pod()["status"]["phase"] == "Running"


def test_an_image_that_is_no_name_is_refused_by_the_node(cluster, pod) -> None:
    cluster.create_pod(pod(container={"image": "Registry/Worker:1"}))
    cluster.wait(10)

    assert state_of(cluster.pod()) == ("waiting", "InvalidImageName")


def test_a_variable_from_nowhere_holds_the_container_up(cluster, pod) -> None:
    cluster.create_pod(pod(container={"env": SECRET_ENV}))
    cluster.wait(10)
    found = cluster.pod()
    assert state_of(found) == ("waiting", "CreateContainerConfigError")
    waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["message"] == 'configmap "settings" not found'

    cluster.call("POST", CONFIGMAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}})
    cluster.wait(20)
    assert cluster.started()[0].env["A"] == "1"


def test_a_volume_from_nowhere_holds_the_pod_up(cluster, pod) -> None:
    cluster.create_pod(pod(volumes=[{"name": "v", "configMap": {"name": "settings"}}]))
    cluster.wait(30)

    assert state_of(cluster.pod()) == ("waiting", "ContainerCreating")
    assert "FailedMount" in cluster.reasons("p")


def test_a_container_gets_its_environment_filled_in(cluster, pod) -> None:
    cluster.call("POST", "/api/v1/namespaces/default/secrets",
                 {"metadata": {"name": "keys"}, "data": {"k": "dmFsdWU="}})  # fmt: skip
    env = [
        {"name": "PLAIN", "value": "x"},
        {"name": "BUILT", "value": "$(PLAIN)/$$(PLAIN)/$(NOBODY)"},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "requests.cpu"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "no", "key": "a", "optional": True}}},
    ]
    container = {
        "env": env,
        "args": ["--name=$(NAME)"],
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    cluster.create_pod(pod(metadata={"labels": {"tier": "t"}}, container=container, volumes=volumes))
    cluster.wait(10)

    (started,) = cluster.started()
    assert started.env == {
        "HOSTNAME": "p", "PLAIN": "x", "BUILT": "x/$(PLAIN)/$(NOBODY)", "NAME": "p", "TIER": "t", "CPU": "4", "KEY": "value",
    }  # fmt: skip
    assert (started.command, started.args) == (("run",), ("--name=p",))
    assert started.volumes == {"/dev/shm": "emptyDir"}


def test_a_deleted_pod_gets_its_grace_and_is_then_gone(make_cluster, pod) -> None:
    cluster = make_cluster(obeys=False)
    cluster.create_pod(pod(terminationGracePeriodSeconds=20))
    cluster.wait(10)
    uid = cluster.started()[0].uid

    status, document = cluster.call("DELETE", f"{PODS}/p")
    assert (status, document["metadata"]["deletionGracePeriodSeconds"]) == (200, 20)
    assert document["metadata"]["deletionTimestamp"] == "2026-03-01T12:00:30Z"
    cluster.wait(20)
    assert cluster.killed() == [PodKill(uid=uid, reason=KillReason.DELETED, grace=timedelta(seconds=20))]
    assert cluster.pod()["status"]["phase"] == "Running"

    # Nobody reported the exit: it is taken for killed.
    cluster.wait(6)
    assert cluster.call("GET", f"{PODS}/p")[0] == 404
    assert cluster.events[-1] == PodRemoved(uid=uid)


def test_a_pod_that_waits_goes_at_once(cluster, pod) -> None:
    cluster.create_pod(pod(container={"resources": {"requests": {"cpu": "64"}}}))
    cluster.wait(5)

    cluster.call("DELETE", f"{PODS}/p")

    assert cluster.call("GET", f"{PODS}/p")[0] == 404


def test_a_pod_that_is_deleted_as_its_image_comes_does_not_start(cluster, pod) -> None:
    cluster.create_pod(pod())
    cluster.wait(6.5, step=0.5)

    cluster.call("DELETE", f"{PODS}/p")
    cluster.wait(10, step=0.5)

    assert cluster.started() == []
    assert cluster.call("GET", f"{PODS}/p")[0] == 404


def test_a_grace_of_zero_lets_a_pod_go_at_once(make_cluster, pod) -> None:
    cluster = make_cluster(obeys=False)
    cluster.create_pod(pod())
    cluster.wait(10)

    cluster.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})

    assert cluster.call("GET", f"{PODS}/p")[0] == 404
    cluster.wait(1)
    assert cluster.events[-1] == PodRemoved(uid=cluster.started()[0].uid)


def test_a_pod_past_its_deadline_is_ended_and_says_why(cluster, pod) -> None:
    cluster.create_pod(pod(activeDeadlineSeconds=30))
    cluster.wait(40)

    found = cluster.pod()
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert [kill.reason for kill in cluster.killed()] == [KillReason.DEADLINE]
    assert "DisruptionTarget" not in cluster.conditions(found)


@pytest.mark.parametrize(
    ("policy", "code", "restarts"), [("Always", 0, True), ("OnFailure", 1, True), ("OnFailure", 0, False)]
)
def test_a_container_is_started_again_as_its_policy_says(make_cluster, pod, policy, code, restarts) -> None:
    cluster = make_cluster(ending=lambda started: code if started.restart == 0 else None)
    cluster.create_pod(pod(restartPolicy=policy))
    cluster.wait(9)
    found = cluster.pod()
    if not restarts:
        assert found["status"]["phase"] == "Succeeded"
        return
    assert state_of(found) == ("waiting", "CrashLoopBackOff")

    cluster.wait(15)

    found = cluster.pod()
    assert [one.restart for one in cluster.started()] == [0, 1]
    status = found["status"]["containerStatuses"][0]
    assert (found["status"]["phase"], status["restartCount"]) == ("Running", 1)
    # A late report about the first container says nothing about the second.
    cluster.core.pod_exited(cluster.started()[0].uid, 1, cluster.now, restart=0)
    status = cluster.pod()["status"]["containerStatuses"][0]
    assert (list(status["state"]), status["restartCount"]) == (["running"], 1)


LOG = b"one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param({}, "one\ntwo\nthree\n", id="whole"),
        pytest.param({"tailLines": "2"}, "two\nthree\n", id="tail"),
        pytest.param({"tailLines": "0"}, "", id="no-tail"),
        pytest.param({"limitBytes": "5"}, "one\nt", id="limit"),
        pytest.param(
            {"tailLines": "9", "container": "worker"}, "one\ntwo\nthree\n", id="tail-beyond-the-start"
        ),
        pytest.param({"sinceSeconds": "1"}, "", id="since"),
        pytest.param(
            {"timestamps": "true", "tailLines": "1"}, "2026-03-01T12:00:10.000000Z three\n", id="timestamps"
        ),
    ],
)
def test_a_log_is_read_as_it_is_asked_for(cluster, pod, query, text) -> None:
    cluster.create_pod(pod())
    cluster.wait(10)
    cluster.core.pod_log(cluster.started()[0].uid, LOG, cluster.now)
    cluster.wait(5)

    assert cluster.call("GET", f"{PODS}/p/log", **query) == (200, text)


def test_lines_may_come_in_pieces(cluster, pod) -> None:
    cluster.create_pod(pod())
    cluster.wait(10)
    for piece in (b"on", b"e\ntw", b"o"):
        cluster.core.pod_log(cluster.started()[0].uid, piece, cluster.now)

    assert cluster.call("GET", f"{PODS}/p/log", tailLines="1") == (200, "two")
    assert cluster.call("GET", f"{PODS}/p/log") == (200, "one\ntwo")


def test_the_log_of_the_last_container_stays(make_cluster, pod) -> None:
    cluster = make_cluster()
    cluster.create_pod(pod(restartPolicy="Always"))
    cluster.wait(10)
    uid = cluster.started()[0].uid
    cluster.core.pod_log(uid, b"first\n", cluster.now)
    cluster.core.pod_exited(uid, 1, cluster.now)
    cluster.wait(30)
    cluster.core.pod_log(uid, b"second\n", cluster.now)

    assert cluster.call("GET", f"{PODS}/p/log") == (200, "second\n")
    assert cluster.call("GET", f"{PODS}/p/log", previous="true") == (200, "first\n")


@pytest.mark.parametrize(
    ("wait", "query", "words"),
    [
        (0, {}, "does not have a host assigned"),
        (3, {}, "is waiting to start: ContainerCreating"),
        (10, {"container": "other"}, "container other is not valid for pod p"),
        (10, {"tailLines": "many"}, "unable to decode query"),
    ],
)
def test_a_log_that_cannot_be_is_refused(cluster, pod, wait, query, words) -> None:
    cluster.create_pod(pod())
    cluster.wait(wait)

    status, answer = cluster.call("GET", f"{PODS}/p/log", **query)

    assert (status, answer["reason"]) == (400, "BadRequest")
    assert words in answer["message"]
