"""Which rule of a pod failure policy a failed pod meets."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.failure_policy import Action, rule_on


def a_failed_pod(code: int | None = 3, *, disrupted: bool = False):
    state = {"waiting": {}} if code is None else {"terminated": {"exitCode": code}}
    conditions = [{"type": "DisruptionTarget", "status": "True" if disrupted else "False"}]
    status = {"containerStatuses": [{"name": "worker", "state": state}], "conditions": conditions}
    return {"metadata": {"name": "p", "namespace": "default"}, "status": status}


def codes(action: str, operator: str, *values: int, **more: str):
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


DISRUPTED = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "pod", "action"),
    [
        pytest.param([], a_failed_pod(), Action.COUNT, id="no-rules"),
        pytest.param([codes("FailJob", "In", 3)], a_failed_pod(3), Action.FAIL_JOB, id="code-among"),
        pytest.param([codes("FailJob", "In", 4)], a_failed_pod(3), Action.COUNT, id="code-not-among"),
        pytest.param([codes("FailIndex", "NotIn", 0)], a_failed_pod(3), Action.FAIL_INDEX, id="any-code"),
        pytest.param(
            [codes("FailIndex", "NotIn", 5)],
            a_failed_pod(0),
            Action.COUNT,
            id="an-exit-of-zero-is-no-failure",
        ),
        pytest.param([codes("FailIndex", "NotIn", 0)], a_failed_pod(None), Action.COUNT, id="never-ran"),
        pytest.param(
            [codes("FailJob", "In", 3, containerName="other")],
            a_failed_pod(3),
            Action.COUNT,
            id="other-container",
        ),
        pytest.param(
            [codes("FailJob", "In", 3, containerName="worker")],
            a_failed_pod(3),
            Action.FAIL_JOB,
            id="own-container",
        ),
        pytest.param([DISRUPTED], a_failed_pod(143, disrupted=True), Action.IGNORE, id="disrupted"),
        pytest.param([DISRUPTED], a_failed_pod(143), Action.COUNT, id="not-disrupted"),
        pytest.param(
            [DISRUPTED, codes("FailIndex", "NotIn", 0)],
            a_failed_pod(143, disrupted=True),
            Action.IGNORE,
            id="first-match",
        ),
        pytest.param(
            [DISRUPTED, codes("FailIndex", "NotIn", 0)], a_failed_pod(3), Action.FAIL_INDEX, id="second-match"
        ),
    ],
)
def test_the_first_rule_that_matches_says_what_a_failure_means(rules, pod, action) -> None:
    assert rule_on({"spec": {"podFailurePolicy": {"rules": rules}}}, pod).action is action


def test_a_ruling_says_what_it_saw() -> None:
    ruling = rule_on({"spec": {"podFailurePolicy": {"rules": [codes("FailJob", "In", 3)]}}}, a_failed_pod(3))

    assert ruling.message == (
        "Container worker for pod default/p failed with exit code 3 matching FailJob rule at index 0"
    )
