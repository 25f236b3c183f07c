"""The rules of a Job: which fields go together, and which may be changed once it is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtender.local.kubernetes.documents import Document, uid_of
from runtender.local.kubernetes.errors import Cause, immutable, required, unsupported, wrong_value
from runtender.local.kubernetes.pod_validation import wrong_template

_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_COUNTS = ("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes",
           "activeDeadlineSeconds", "ttlSecondsAfterFinished")  # fmt: skip
_IMMUTABLE = ("completions", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "podReplacementPolicy",
              "selector", "successPolicy", "managedBy")  # fmt: skip
_MOST_PARALLEL = 100_000
_MOST_CODES = 255
_MOST_RULES = 20


def wrong_job(job: Document) -> Iterator[Cause]:
    """Go through what is wrong with a new Job."""
    spec = job["spec"]
    for name in _COUNTS:
        if spec.get(name) is not None and spec[name] < 0:
            yield wrong_value(f"spec.{name}", spec[name], "must be greater than or equal to 0")
    if spec["completionMode"] not in _MODES:
        yield unsupported("spec.completionMode", spec["completionMode"], _MODES)
    yield from _wrong_selector(job)
    yield from _wrong_indexes(job["metadata"]["name"], spec)
    yield from _wrong_policy(spec)
    yield from wrong_template(spec["template"], "spec.template.spec", policies=("OnFailure", "Never"))


def changed_job(before: Document, after: Document) -> Iterator[Cause]:
    """Go through what may not be changed of a Job."""
    old, new = before["spec"], after["spec"]
    for name in _IMMUTABLE:
        if old.get(name) != new.get(name):
            elastic = (
                name == "completions"
                and new["completionMode"] == "Indexed"
                and new.get("completions") == new.get("parallelism")
            )
            if not elastic:
                yield immutable(f"spec.{name}", new.get(name))
    # Only a Job that never started may get another template, and of that only where its pods go.
    if old["template"] != new["template"]:
        yield immutable("spec.template", new["template"])


def _wrong_selector(job: Document) -> Iterator[Cause]:
    own = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid_of(job)}}
    if not job["spec"]["manualSelector"] and job["spec"].get("selector") != own:
        yield wrong_value("spec.selector", job["spec"].get("selector"), "`selector` not auto-generated")


def _wrong_indexes(name: str, spec: Mapping[str, Any]) -> Iterator[Cause]:
    completions, per_index = spec.get("completions"), spec.get("backoffLimitPerIndex")
    most_failed = spec.get("maxFailedIndexes")
    if spec["completionMode"] == "Indexed":
        if completions is None:
            yield required("spec.completions", "when completion mode is Indexed")
            return
        if spec["parallelism"] > _MOST_PARALLEL:
            words = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
            yield wrong_value("spec.parallelism", spec["parallelism"], words)
        # The host name of the last pod has to be a label.
        if len(f"{name}-{max(0, completions - 1)}") > 63:
            words = f"will not able to create pod with invalid DNS label: {name}-{completions - 1}"
            yield wrong_value("metadata.name", name, words)
    elif per_index is not None:
        yield wrong_value("spec.backoffLimitPerIndex", per_index, "requires indexed completion mode")
    if per_index is not None and spec["template"]["spec"].get("restartPolicy") != "Never":
        policy = spec["template"]["spec"].get("restartPolicy")
        words = 'only "Never" is allowed when backoffLimitPerIndex is specified'
        yield wrong_value("spec.template.spec.restartPolicy", policy, words)
    if most_failed is not None:
        if per_index is None:
            yield required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        if completions is not None and most_failed > completions:
            words = "must be less than or equal to completions"
            yield wrong_value("spec.maxFailedIndexes", most_failed, words)


def _wrong_policy(spec: Mapping[str, Any]) -> Iterator[Cause]:
    policy = spec.get("podFailurePolicy")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None and replacement not in _REPLACEMENTS:
        yield unsupported("spec.podReplacementPolicy", replacement, _REPLACEMENTS)
    if not policy:
        return
    if replacement not in {None, "Failed"}:
        yield unsupported("spec.podReplacementPolicy", replacement, ("Failed",))
    if spec["template"]["spec"].get("restartPolicy") != "Never":
        found = spec["template"]["spec"].get("restartPolicy")
        words = 'only "Never" is allowed when podFailurePolicy is specified'
        yield wrong_value("spec.template.spec.restartPolicy", found, words)
    rules = policy.get("rules") or ()
    if len(rules) > _MOST_RULES:
        yield Cause(field="spec.podFailurePolicy.rules", reason="FieldValueTooMany",
                    words=f"Too many: {len(rules)}: must have at most {_MOST_RULES} items")  # fmt: skip
    names = {container.get("name") for container in spec["template"]["spec"].get("containers") or ()}
    for index, rule in enumerate(rules):
        yield from _wrong_rule(rule, f"spec.podFailurePolicy.rules[{index}]", spec, names)


def _wrong_rule(
    rule: Mapping[str, Any], path: str, spec: Mapping[str, Any], containers: set[Any]
) -> Iterator[Cause]:
    action = rule.get("action")
    if action not in _ACTIONS:
        yield unsupported(f"{path}.action", action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        words = "requires the backoffLimitPerIndex to be set"
        yield wrong_value(f"{path}.action", action, words)
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if bool(codes) is bool(conditions):
        yield wrong_value(path, {}, "specifying one of OnExitCodes and OnPodConditions is required")
    if codes:
        yield from _wrong_codes(codes, f"{path}.onExitCodes", containers)


def _wrong_codes(codes: Mapping[str, Any], path: str, containers: set[Any]) -> Iterator[Cause]:
    values = codes.get("values") or ()
    if codes.get("operator") not in {"In", "NotIn"}:
        yield unsupported(f"{path}.operator", codes.get("operator"), ("In", "NotIn"))
    if not values:
        yield wrong_value(f"{path}.values", [], "at least one value is required")
    if len(values) > _MOST_CODES:
        words = f"Too many: {len(values)}: must have at most {_MOST_CODES} items"
        yield Cause(field=f"{path}.values", reason="FieldValueTooMany", words=words)
    if list(values) != sorted(set(values)):
        yield wrong_value(f"{path}.values", [], "must be ordered")
    if codes.get("operator") == "In" and 0 in values:
        yield wrong_value(f"{path}.values", 0, "must not be 0 for the In operator")
    name = codes.get("containerName")
    if name is not None and name not in containers:
        words = "must be one of the container or initContainer names in the pod template"
        yield wrong_value(f"{path}.containerName", name, words)
