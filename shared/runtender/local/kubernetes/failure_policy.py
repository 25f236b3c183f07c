"""What a failed pod means to its Job: its pod failure policy, rule by rule, the first that matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from runtender.local.kubernetes.documents import Document, condition_of, name_of, namespace_of


class Action(StrEnum):
    """What becomes of a Job whose pod failed. COUNT is also what holds where no rule matches."""

    COUNT = "Count"
    IGNORE = "Ignore"
    FAIL_INDEX = "FailIndex"
    FAIL_JOB = "FailJob"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruling:
    """The action for one pod, and why, in the words of the Job's condition."""

    action: Action
    message: str = ""


_COUNTED = Ruling(action=Action.COUNT)


def rule_on(job: Mapping[str, Any], pod: Document) -> Ruling:
    """Return what a pod that has failed means to its Job."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or ()
    for index, rule in enumerate(rules):
        matched = (
            _by_exit_codes(rule["onExitCodes"], pod) if rule.get("onExitCodes") else _by_condition(rule, pod)
        )
        if matched:
            where = f"{namespace_of(pod)}/{name_of(pod)}"
            message = f"{matched.format(pod=where)} matching {rule['action']} rule at index {index}"
            return Ruling(action=Action(rule["action"]), message=message)
    return _COUNTED


def _by_exit_codes(wanted: Mapping[str, Any], pod: Document) -> str:
    for status in pod.get("status", {}).get("containerStatuses") or ():
        if wanted.get("containerName") not in {None, status["name"]}:
            continue
        ended = status["state"].get("terminated")
        if not ended or ended["exitCode"] == 0:
            continue
        if (ended["exitCode"] in wanted["values"]) is (wanted["operator"] == "In"):
            return f"Container {status['name']} for pod {{pod}} failed with exit code {ended['exitCode']}"
    return ""


def _by_condition(rule: Mapping[str, Any], pod: Document) -> str:
    for wanted in rule.get("onPodConditions") or ():
        found = condition_of(pod, wanted["type"])
        if found is not None and found["status"] == wanted.get("status", "True"):
            return f"Pod {{pod}} has condition {wanted['type']}"
    return ""
