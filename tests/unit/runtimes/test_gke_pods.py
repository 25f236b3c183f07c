"""What pods say of themselves, and what keeps those that wait from starting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runtender.observed import PodSeen, Trouble, TroubleKind
from runtender.runtimes.gke_pods import read_pods

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SCHEDULED_AT, STARTED_AT = NOON + timedelta(seconds=20), NOON + timedelta(seconds=50)


def at(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def container(**state):
    return {"containerStatuses": [{"name": "sidecar", "state": {}}, {"name": "worker", "state": state}]}


def scheduled(status="True", **more):
    return {"type": "PodScheduled", "status": status, "lastTransitionTime": at(SCHEDULED_AT), **more}


def pod(index=0, phase="Pending", conditions=(), born=NOON, about=None, **status):
    return {
        "metadata": {
            "name": f"sf-a-{index}-xyz",
            "uid": f"pod-{index}",
            "creationTimestamp": at(born),
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            **(about or {}),
        },
        "status": {"phase": phase, "conditions": list(conditions), **status},
    }


def running(index=0, started=STARTED_AT):
    return pod(index, "Running", [scheduled()], **container(running={"startedAt": at(started)}))


def ended(index=0, code=0, reason="Completed", conditions=(), **status):
    terminated = {"exitCode": code, "reason": reason, "startedAt": at(STARTED_AT)}
    phase = "Failed" if code else "Succeeded"
    return pod(index, phase, [scheduled(), *conditions], **container(terminated=terminated), **status)


def waiting(reason, message="", index=0):
    return pod(index, "Pending", [scheduled()], **container(waiting={"reason": reason, "message": message}))


def warning(reason, message="", uid="pod-0", first=NOON, last=None):
    return {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "involvedObject": {"uid": uid},
        "firstTimestamp": at(first),
        "lastTimestamp": at(last or first),
    }


@pytest.fixture
def seen(a_row):
    def read(*pods, warnings=()):
        return read_pods(a_row(uid="job-1"), pods, warnings)

    return read


def test_pods_that_run_have_no_trouble_and_the_first_start_counts(seen):
    view = seen(running(1, started=STARTED_AT + timedelta(seconds=9)), running(0))
    assert (view.scheduled_at, view.started_at, view.trouble) == (SCHEDULED_AT, STARTED_AT, None)
    assert [one.index for one in view.pods] == [1, 0]


@pytest.mark.parametrize(
    ("document", "facts"),
    [
        pytest.param(
            ended(3),
            {"phase": "Succeeded", "index": 3, "exit_code": 0, "reason": "Completed"},
            id="succeeded",
        ),
        pytest.param(
            ended(0, code=7, reason="Error"),
            {"phase": "Failed", "exit_code": 7, "reason": "Error"},
            id="failed",
        ),
        pytest.param(
            ended(0, code=137, reason="OOMKilled"),
            {"phase": "Failed", "exit_code": 137, "reason": "OOMKilled", "out_of_memory": True},
            id="out of memory",
        ),
        pytest.param(
            {
                **ended(
                    0, code=143, reason="Error", conditions=[{"type": "DisruptionTarget", "status": "True"}]
                )
            }
            | {},
            {"phase": "Failed", "exit_code": 143, "reason": "Error", "disrupted": True},
            id="taken away",
        ),
        pytest.param(
            pod(0, "Failed", reason="Evicted"),
            {"phase": "Failed", "reason": "Evicted"},
            id="evicted before it ran",
        ),
        pytest.param(
            pod(0, "Running", about={"annotations": None, "labels": None}),
            {"phase": "Running", "index": None},
            id="no index",
        ),
    ],
)
def test_a_pod_is_read_as_it_stands(seen, document, facts):
    (one,) = seen(document).pods
    wanted = {"name": one.name, "uid": one.uid, "index": 0, **facts}
    assert one == PodSeen(**wanted)


def test_a_container_that_never_began_has_not_started_in_1970(seen):
    never = {"exitCode": 128, "reason": "ContainerCannotRun", "startedAt": "1970-01-01T00:00:00Z"}
    view = seen(pod(0, "Failed", [scheduled()], **container(terminated=never)))
    assert (view.started_at, view.pods[0].exit_code) == (None, 128)


CONTAINER_TROUBLES = {
    TroubleKind.IMAGE_PULL: (
        "ErrImagePull ImagePullBackOff InvalidImageName ErrImageNeverPull RegistryUnavailable ImageInspectError"
    ),
    TroubleKind.CONFIG: "CreateContainerConfigError CreateContainerError RunContainerError",
}
EVENT_TROUBLES = {TroubleKind.MOUNT: "FailedMount FailedAttachVolume FailedCreatePodSandBox"}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(kind, reason) for kind, reasons in CONTAINER_TROUBLES.items() for reason in reasons.split()],
)
def test_a_container_that_waits_says_why(seen, kind, reason):
    view = seen(running(1), waiting(reason, "words"))
    assert view.trouble == Trouble(kind=kind, reason=reason, message="words", since=SCHEDULED_AT)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [(kind, reason) for kind, reasons in EVENT_TROUBLES.items() for reason in reasons.split()],
)
def test_what_a_container_does_not_say_stands_in_an_event_about_its_pod(seen, kind, reason):
    view = seen(waiting("ContainerCreating"), warnings=[warning(reason, "words")])
    assert view.trouble == Trouble(kind=kind, reason=reason, message="words", since=SCHEDULED_AT)


def test_an_event_about_a_pod_that_runs_or_is_another_is_no_trouble(seen):
    old = [
        warning("FailedMount"),
        warning("FailedMount", uid="somebody-elses"),
        warning("FailedMount", uid=""),
    ]
    assert seen(running(0), warnings=old).trouble is None
    assert seen(waiting("ContainerCreating", index=5), warnings=old).trouble is None


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", ""])
def test_a_container_that_is_being_made_is_no_trouble(seen, reason):
    assert seen(waiting(reason)).trouble is None


UNSCHEDULABLE = scheduled("False", reason="Unschedulable", message="0/4 nodes are available")


def test_a_pod_without_a_node_is_unschedulable_since_it_was_made(seen):
    view = seen(pod(0, "Pending", [UNSCHEDULABLE]))
    assert view.scheduled_at is None
    assert view.trouble == Trouble(
        kind=TroubleKind.UNSCHEDULABLE, reason="Unschedulable", message="0/4 nodes are available", since=NOON
    )


@pytest.mark.parametrize("reason", ["FailedScheduling", "FailedScaleUp"])
def test_an_event_says_better_than_the_condition_why_there_is_no_node(seen, reason):
    view = seen(pod(0, "Pending", [UNSCHEDULABLE]), warnings=[warning(reason, "GCE out of resources")])
    assert view.trouble == Trouble(
        kind=TroubleKind.UNSCHEDULABLE, reason=reason, message="GCE out of resources", since=NOON
    )


def test_a_pod_that_got_its_node_is_not_unschedulable_any_more(seen):
    view = seen(waiting("ContainerCreating"), warnings=[warning("FailedScheduling", "no node")])
    assert view.trouble is None


def test_a_pod_that_is_going_or_has_ended_waits_for_nothing(seen):
    going = pod(0, "Pending", [UNSCHEDULABLE], about={"deletionTimestamp": at(NOON)})
    failed = pod(1, "Failed", [scheduled()], **container(waiting={"reason": "ErrImagePull"}))
    assert seen(going, failed).trouble is None


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        pytest.param(
            'Error creating: pods "sf-a-0-x" is forbidden: exceeded quota: compute',
            TroubleKind.QUOTA,
            id="quota",
        ),
        pytest.param(
            'Error creating: pods "sf-a-0-x" is forbidden: serviceaccount "w" not found',
            TroubleKind.CONFIG,
            id="another reason",
        ),
    ],
)
def test_pods_that_cannot_be_made_are_the_jobs_trouble(seen, message, kind):
    said = warning("FailedCreate", message, uid="job-1", first=NOON, last=NOON + timedelta(minutes=3))
    view = seen(running(0), warnings=[said])
    assert view.trouble == Trouble(kind=kind, reason="FailedCreate", message=message, since=NOON)


def test_a_pod_made_since_shows_that_pods_can_be_made(seen):
    said = warning("FailedCreate", "exceeded quota", uid="job-1", last=NOON + timedelta(minutes=3))
    assert seen(pod(0, born=NOON + timedelta(minutes=4)), warnings=[said]).trouble is None


def test_a_series_of_events_is_as_new_as_its_last_sighting(seen):
    said = {
        "reason": "FailedCreate",
        "message": "exceeded quota",
        "involvedObject": {"uid": "job-1"},
        "eventTime": "2026-05-04T12:00:00.000000Z",
        "firstTimestamp": None,
        "series": {"lastObservedTime": at(NOON + timedelta(minutes=9))},
    }
    trouble = seen(pod(0, born=NOON + timedelta(minutes=4)), warnings=[said]).trouble
    assert trouble is not None
    assert (trouble.kind, trouble.since) == (TroubleKind.QUOTA, NOON)


def test_the_gravest_trouble_counts_and_of_equal_ones_the_oldest(seen):
    younger = pod(1, "Pending", [UNSCHEDULABLE], born=NOON + timedelta(minutes=1))
    older = pod(2, "Pending", [UNSCHEDULABLE])
    trouble = seen(younger, older).trouble
    assert trouble is not None
    assert (trouble.kind, trouble.since) == (TroubleKind.UNSCHEDULABLE, NOON)
    trouble = seen(older, waiting("ImagePullBackOff"), waiting("CreateContainerConfigError", index=3)).trouble
    assert trouble is not None
    assert trouble.kind is TroubleKind.CONFIG


def test_the_words_of_a_trouble_are_cut(seen):
    trouble = seen(waiting("ErrImagePull", "x" * 9000)).trouble
    assert trouble is not None
    assert len(trouble.message) == 500


def test_the_words_of_a_trouble_tell_no_secret(seen):
    trouble = seen(waiting("ErrImagePull", "401 for Bearer abc.def-0123456789")).trouble
    assert trouble is not None
    assert trouble.message == "401 for [redacted]"


def test_no_pods_are_no_trouble(seen):
    view = seen()
    assert (view.pods, view.scheduled_at, view.started_at, view.trouble) == ((), None, None, None)
