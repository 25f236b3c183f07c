"""The Kubernetes client of PyPI against the simulated API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def kubernetes():
    """The package: hundreds of modules, which only who runs these tests has to load."""
    return pytest.importorskip("kubernetes", reason="the package kubernetes is not installed")


@pytest.fixture
def api(kubernetes, served) -> Iterator:
    configuration = kubernetes.client.Configuration()
    configuration.host = f"https://{served.server.endpoint}"
    configuration.ssl_ca_cert = str(served.own.ca_file)
    configuration.retries = False
    with kubernetes.client.ApiClient(configuration) as client:
        yield client


@pytest.fixture
def batch(kubernetes, api):
    return kubernetes.client.BatchV1Api(api)


@pytest.fixture
def core(kubernetes, api):
    return kubernetes.client.CoreV1Api(api)


@pytest.fixture
def wait_for_end(kubernetes, batch):
    """Watch a Job until a condition says that it has ended, and return it."""

    def wait(name: str):
        watch = kubernetes.watch.Watch()
        selector = f"metadata.name={name}"
        for event in watch.stream(
            batch.list_namespaced_job, "default", field_selector=selector, timeout_seconds=20
        ):
            for condition in event["object"].status.conditions or ():
                if condition.type in {"Complete", "Failed"} and condition.status == "True":
                    watch.stop()
                    return event["object"]
        raise AssertionError(f"job {name} did not end")

    return wait


def test_a_job_is_made_watched_read_and_deleted(kubernetes, batch, core, wait_for_end, job) -> None:
    created = batch.create_namespaced_job("default", job("j", "say", "hello", "bye"))
    assert (created.metadata.name, created.spec.backoff_limit) == ("j", 6)

    ended = wait_for_end("j")
    assert (ended.status.succeeded, ended.status.completed_indexes) == (2, "0,1")
    assert ended.status.completion_time >= ended.status.start_time

    pods = core.list_namespaced_pod("default", label_selector="job-name=j").items
    assert [pod.status.phase for pod in pods] == ["Succeeded", "Succeeded"]
    assert core.read_namespaced_pod_log(pods[0].metadata.name, "default", tail_lines=1) == "bye\n"
    events = core.list_namespaced_event("default", field_selector="involvedObject.name=j").items
    assert "SuccessfulCreate" in [event.reason for event in events]

    options = kubernetes.client.V1DeleteOptions(
        propagation_policy="Background",
        preconditions=kubernetes.client.V1Preconditions(uid=ended.metadata.uid),
    )
    assert batch.delete_namespaced_job("j", "default", body=options).status == "Success"


def test_a_failed_pod_tells_its_exit_code(batch, core, wait_for_end, job) -> None:
    batch.create_namespaced_job("default", job("j", "fail", "3", workers=1, backoffLimitPerIndex=0))

    ended = wait_for_end("j")

    assert [one.reason for one in ended.status.conditions if one.type == "Failed"] == ["FailedIndexes"]
    (pod,) = core.list_namespaced_pod("default").items
    assert pod.status.container_statuses[0].state.terminated.exit_code == 3


@pytest.mark.parametrize(
    ("code", "reason", "call"),
    [
        (404, "NotFound", lambda batch, _job: batch.read_namespaced_job("nobody", "default")),
        (
            409,
            "AlreadyExists",
            lambda batch, job: [batch.create_namespaced_job("default", job("j", "run")) for _ in "12"],
        ),
        (
            422,
            "Invalid",
            lambda batch, job: batch.create_namespaced_job("default", job("j", "run", maxFailedIndexes=1)),
        ),
    ],
)
def test_a_refusal_is_an_error_with_its_status(kubernetes, batch, job, code, reason, call) -> None:
    with pytest.raises(kubernetes.client.ApiException) as caught:
        call(batch, job)

    assert caught.value.status == code
    assert f'"reason": "{reason}"' in caught.value.body


def test_a_delete_by_labels_takes_what_has_them(batch, core, job) -> None:
    for name in ("a", "b"):
        batch.create_namespaced_job(
            "default", {**job(name, "run", workers=1), "metadata": {"name": name, "labels": {"n": name}}}
        )

    batch.delete_collection_namespaced_job("default", label_selector="n=a", propagation_policy="Background")

    assert [one.metadata.name for one in batch.list_namespaced_job("default").items] == ["b"]


def test_a_job_is_patched(batch, job) -> None:
    batch.create_namespaced_job("default", job("j", "run", suspend=True))

    patched = batch.patch_namespaced_job("j", "default", {"spec": {"suspend": False}})

    assert patched.spec.suspend is False


def test_a_list_is_continued(batch, job) -> None:
    for name in "abc":
        batch.create_namespaced_job("default", job(name, "run", suspend=True))

    first = batch.list_namespaced_job("default", limit=2)
    second = batch.list_namespaced_job("default", limit=2, _continue=first.metadata._continue)  # noqa: SLF001 - so named there

    assert [one.metadata.name for one in (*first.items, *second.items)] == ["a", "b", "c"]


def test_a_server_says_its_version(kubernetes, api) -> None:
    assert kubernetes.client.VersionApi(api).get_code().minor == "34"
