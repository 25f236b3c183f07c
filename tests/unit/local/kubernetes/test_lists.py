"""Lists and watches: selectors, pages, and changes as they come."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial

import pytest

from runtender.local.http import HttpRequest, HttpResponse
from runtender.local.kubernetes.cluster import Cluster as KubernetesState
from runtender.local.kubernetes.documents import Document, Key
from runtender.local.kubernetes.routes import Call, find_call
from runtender.local.kubernetes.store import Store
from runtender.local.kubernetes.timings import Timings
from runtender.local.kubernetes.watches import Watch

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def labelled(cluster, pod):
    """A cluster with the pods a, b and c, of which b and c have labels."""
    for name, labels in (("a", {}), ("b", {"app": "x", "tier": "1"}), ("c", {"app": "y"})):
        cluster.create_pod(pod(name, metadata={"labels": labels}))
    return cluster


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("", "abc"),
        ("app", "bc"),
        ("!app", "a"),
        ("app=x", "b"),
        ("app==x", "b"),
        ("app!=x", "ac"),
        ("app in (x, y)", "bc"),
        ("app notin (x)", "ac"),
        ("app in (x,y),tier=1", "b"),
        ("app=x,tier!=1", ""),
        ("app=", ""),
    ],
)
def test_labels_select(labelled, selector, names) -> None:
    assert [pod["metadata"]["name"] for pod in labelled.pods(labelSelector=selector)] == list(names)


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("metadata.name=b", "b"),
        ("metadata.name!=b", "ac"),
        ("status.phase=Pending", "abc"),
        ("status.phase!=Pending,metadata.namespace=default", ""),
        ("spec.nodeName=", "abc"),
    ],
)
def test_fields_select(labelled, selector, names) -> None:
    assert [pod["metadata"]["name"] for pod in labelled.pods(fieldSelector=selector)] == list(names)


@pytest.mark.parametrize(
    "query",
    [
        {"labelSelector": "a=b=c"},
        {"labelSelector": "in (x"},
        {"fieldSelector": "spec.image=x"},
        {"fieldSelector": "x"},
        {"limit": "x"},
    ],
)
def test_a_selector_that_cannot_be_read_is_refused(labelled, query) -> None:
    status, answer = labelled.call("GET", PODS, **query)

    assert (status, answer["reason"]) == (400, "BadRequest")


def test_a_list_says_what_it_lists_and_its_entries_do_not(labelled) -> None:
    _, listed = labelled.call("GET", "/api/v1/pods")

    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert all({"kind", "apiVersion"}.isdisjoint(pod) for pod in listed["items"])


def test_a_list_comes_in_pages_as_it_was_when_it_began(labelled, pod) -> None:
    _, first = labelled.call("GET", PODS, limit="2")
    labelled.create_pod(pod("bb"))
    labelled.call("DELETE", f"{PODS}/c")

    _, second = labelled.call("GET", PODS, limit="2", **{"continue": first["metadata"]["continue"]})

    assert [one["metadata"]["name"] for one in (*first["items"], *second["items"])] == ["a", "b", "c"]
    assert first["metadata"]["remainingItemCount"] == 1
    assert "continue" not in second["metadata"]
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


@pytest.mark.parametrize("wait", [None, 301])
def test_a_list_cannot_be_continued_for_ever(labelled, wait) -> None:
    _, first = labelled.call("GET", PODS, limit="2")
    token = first["metadata"]["continue"] if wait else "nonsense"
    labelled.now += timedelta(seconds=wait or 0)

    status, answer = labelled.call("GET", PODS, limit="2", **{"continue": token})

    assert (status, answer["reason"]) == (410, "Expired")


def test_kubectl_gets_a_table(labelled) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}

    _, table = labelled.call("GET", PODS, headers=accept)

    assert table["kind"] == "Table"
    assert [one["name"] for one in table["columnDefinitions"]] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"] == ["a", "0/1", "Pending", "0", "0s"]
    assert (
        labelled.call("GET", f"{PODS}/a", headers=accept)[1]["rows"][0]["object"]["metadata"]["name"] == "a"
    )


def watched(cluster, path=PODS, **query):
    """Return what a watch has to tell at this moment, as type and name."""
    _, text = cluster.call("GET", path, watch="1", **query)
    events = [json.loads(line) for line in text.splitlines()]
    return [(event["type"], event["object"].get("metadata", {}).get("name", "")) for event in events]


def version(cluster) -> str:
    return str(cluster.call("GET", PODS)[1]["metadata"]["resourceVersion"])


def test_a_watch_begins_with_all_there_is_or_after_a_version(labelled, pod) -> None:
    assert watched(labelled) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]

    since = version(labelled)
    assert watched(labelled, resourceVersion=since) == []
    labelled.create_pod(pod("d"))
    labelled.call("DELETE", f"{PODS}/a")
    assert watched(labelled, resourceVersion=since) == [("ADDED", "d"), ("DELETED", "a")]


def test_a_watch_sees_through_its_selector(labelled) -> None:
    since = version(labelled)
    patch = {"Content-Type": "application/merge-patch+json"}
    labelled.call("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "x"}}}, headers=patch)
    labelled.call("PATCH", f"{PODS}/b", {"metadata": {"labels": {"app": "z"}}}, headers=patch)
    labelled.call("PATCH", f"{PODS}/a", {"metadata": {"labels": {"tier": "2"}}}, headers=patch)
    labelled.call("PATCH", f"{PODS}/c", {"metadata": {"labels": {"tier": "2"}}}, headers=patch)

    seen = watched(labelled, resourceVersion=since, labelSelector="app=x")

    assert seen == [("ADDED", "a"), ("DELETED", "b"), ("MODIFIED", "a")]


def test_a_watch_of_one_namespace_hears_nothing_of_others(labelled) -> None:
    since = version(labelled)
    labelled.call("POST", "/api/v1/namespaces", {"metadata": {"name": "other"}})

    assert watched(labelled, "/api/v1/namespaces/default/serviceaccounts", resourceVersion=since) == []
    assert watched(labelled, "/api/v1/serviceaccounts", resourceVersion=since) == [("ADDED", "default")]


def test_a_watch_says_when_it_has_told_all_that_was_there(labelled) -> None:
    seen = watched(labelled, sendInitialEvents="true", allowWatchBookmarks="true", resourceVersion="0")

    assert seen == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("BOOKMARK", "")]


def test_a_watch_of_a_version_that_never_was_is_an_error_of_its_own(labelled) -> None:
    assert labelled.call("GET", PODS, watch="1", resourceVersion="one")[0] == 400


def a_changing_store(remembered: int, changes: int) -> tuple[Store, int]:
    """Return a store with an object that was changed so many times, and the version before those."""
    store = Store(remembered=remembered)
    key = Key(resource="configmaps", namespace="default", name="c")
    store.put("configmaps", {"metadata": {"name": "c", "namespace": "default", "uid": "u"}})
    begun = store.version
    for number in range(changes):
        store.edit(key, partial(note, number))
    return store, begun


def note(number: int, document: Document) -> None:
    document["data"] = {"n": str(number)}


def test_the_last_changes_are_remembered() -> None:
    store, begun = a_changing_store(remembered=3, changes=3)

    assert [change.document["data"]["n"] for change in store.changes_since(begun)] == ["0", "1", "2"]


def test_a_watch_that_is_too_far_behind_is_told_so(labelled) -> None:
    call = find_call(HttpRequest(method="GET", path="/api/v1/configmaps", query={"watch": "1"}))
    cluster = KubernetesState(name="c", minor=34, timings=Timings(), born=labelled.now)
    cluster.store, begun = a_changing_store(remembered=3, changes=4)
    assert isinstance(call, Call)
    watch = Watch.open(call, cluster, lambda document: document)
    watch.version = begun

    event = json.loads(watch.poll())

    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert watch.over


def test_a_watch_ends_after_its_time_with_a_bookmark(labelled) -> None:
    query = {
        "watch": "1",
        "timeoutSeconds": "30",
        "allowWatchBookmarks": "true",
        "resourceVersion": version(labelled),
    }
    stream = labelled.core.open(HttpRequest(method="GET", path=PODS, query=query), labelled.now)
    assert not isinstance(stream, HttpResponse)

    assert (labelled.core.poll(stream, labelled.now), stream.over) == (b"", False)
    labelled.core.advance(labelled.now + timedelta(seconds=31))
    text = labelled.core.poll(stream, labelled.now + timedelta(seconds=31))

    assert stream.over
    assert json.loads(text.splitlines()[-1])["type"] == "BOOKMARK"
