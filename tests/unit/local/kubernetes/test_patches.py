"""Patches: what each kind of them makes of an object."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.errors import StatusError
from runtender.local.kubernetes.patches import apply_steps, merge, merge_strategically

A_AND_B = [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]
TWO = {"containers": A_AND_B, "args": ["x"]}


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param({"a": 1}, {"b": 2}, {"a": 1, "b": 2}, id="add"),
        pytest.param({"a": 1}, {"a": None}, {}, id="remove"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="below"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists-whole"),
        pytest.param({"a": 1}, {"a": {"b": None}}, {"a": {}}, id="object-for-value"),
    ],
)
def test_a_merge_patch(target, patch, result) -> None:
    assert merge(target, patch) == result


@pytest.mark.parametrize(
    ("patch", "result"),
    [
        pytest.param(
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}], "args": ["x"]},
            id="entry-by-its-key",
        ),
        pytest.param(
            {
                "containers": [{"name": "c"}],
                "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "b"}],
            },
            {"containers": [{"name": "c"}, *A_AND_B], "args": ["x"]},
            id="new-entry-in-order",
        ),
        pytest.param(
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [{"name": "b", "image": "1"}], "args": ["x"]},
            id="entry-deleted",
        ),
        pytest.param(
            {"containers": [{"$patch": "replace"}, {"name": "z"}]},
            {"containers": [{"name": "z"}], "args": ["x"]},
            id="list-replaced",
        ),
        pytest.param({"args": ["y"]}, {**TWO, "args": ["y"]}, id="plain-list-whole"),
        pytest.param({"$retainKeys": ["args"]}, {"args": ["x"]}, id="retained"),
        pytest.param({"$patch": "replace", "args": ["z"]}, {"args": ["z"]}, id="replaced"),
        pytest.param({"$deleteFromPrimitiveList/args": ["x"]}, {**TWO, "args": []}, id="value-deleted"),
        pytest.param({"finalizers": ["f"]}, {**TWO, "finalizers": ["f"]}, id="set"),
    ],
)
def test_a_strategic_patch(patch, result) -> None:
    assert merge_strategically(TWO, patch) == result


def test_the_ports_of_a_service_are_told_apart_by_their_own_key() -> None:
    patch = {"ports": [{"port": 81, "name": "b"}]}

    assert merge_strategically({"ports": [{"port": 80, "name": "a"}]}, patch) == {
        "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]
    }


@pytest.mark.parametrize(
    ("steps", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/-", "value": 3}], {"a": [1, 2, 3]}),
        ([{"op": "add", "path": "/a/0", "value": 0}], {"a": [0, 1, 2]}),
        ([{"op": "replace", "path": "/a/1", "value": 9}], {"a": [1, 9]}),
        ([{"op": "remove", "path": "/a/0"}, {"op": "test", "path": "/a/0", "value": 2}], {"a": [2]}),
        ([{"op": "add", "path": "/x~1y", "value": 1}], {"a": [1, 2], "x/y": 1}),
    ],
)
def test_a_json_patch(steps, result) -> None:
    assert apply_steps({"a": [1, 2]}, steps) == result


@pytest.mark.parametrize(
    "steps",
    [
        [{"op": "replace", "path": "/b", "value": 1}],
        [{"op": "remove", "path": "/b"}],
        [{"op": "test", "path": "/a", "value": 1}],
        [{"op": "jump", "path": "/a"}],
        {"op": "add"},
    ],
)
def test_a_json_patch_that_cannot_be_applied_is_refused(steps) -> None:
    with pytest.raises(StatusError):
        apply_steps({"a": [1, 2]}, steps)
