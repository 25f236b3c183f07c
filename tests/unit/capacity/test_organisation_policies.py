"""What a policy of the organisation forbids is a fault of the deployment, and not to be waited for."""

from __future__ import annotations

from typing import Any

import pytest

from runtender.capacity.classify import classify_http, classify_operation
from runtender.model import Scope, Verdict
from runtender.ports import ApiAnswer

FAULT = (Verdict.CONFIG_FAULT, Scope.PROJECT)
ELSEWHERE = (Verdict.HARD_CEILING, Scope.REGION)

SAID = {
    "images": (
        412,
        (
            "Constraint constraints/compute.trustedImageProjects violated for project p. "
            "Use of images from project cos-cloud is prohibited."
        ),
        FAULT,
    ),
    "external addresses": (
        412,
        (
            "Constraint constraints/compute.vmExternalIpAccess violated for project 1. "
            "Add instance projects/p/zones/z/instances/sf-x to the constraint to use external IP with it."
        ),
        FAULT,
    ),
    "shielded machines": (
        412,
        "Constraint constraints/compute.requireShieldedVm violated for project projects/p. Secure Boot is not enabled.",
        FAULT,
    ),
    "keys": (
        400,
        (
            "Constraint constraints/gcp.restrictNonCmekServices violated for projects/p attempting to create a resource "
            "without specifying a KMS CryptoKey."
        ),
        FAULT,
    ),
    "a service perimeter": (
        403,
        "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: abc",
        FAULT,
    ),
    "locations": (
        412,
        (
            "Location us-east1-b violates constraint constraints/gcp.resourceLocations on the resource "
            "//compute.googleapis.com/projects/p/zones/us-east1-b/instances/sf-x."
        ),
        ELSEWHERE,
    ),
}


@pytest.mark.parametrize(("status", "message", "meaning"), SAID.values(), ids=SAID)
def test_an_answer_that_names_a_policy_says_that_it_is_one(
    status: int, message: str, meaning: tuple[Verdict, Scope]
) -> None:
    error = {
        "code": status,
        "message": message,
        "errors": [{"reason": "conditionNotMet", "message": message}],
    }
    refusal = classify_http(ApiAnswer(status=status, body={"error": error}))
    assert ((refusal.verdict, refusal.scope), refusal.recognised) == (meaning, True)


@pytest.mark.parametrize("status", [412, None], ids=["with its status", "without"])
def test_so_does_an_operation(status: int | None) -> None:
    operation: dict[str, Any] = {
        "error": {"errors": [{"code": "CONDITION_NOT_MET", "message": SAID["images"][1]}]}
    }
    refusal = classify_operation(operation | ({} if status is None else {"httpErrorStatusCode": status}))
    assert (refusal.verdict, refusal.scope) == FAULT


def test_a_precondition_that_names_no_policy_is_tried_again() -> None:
    answer = ApiAnswer(
        status=412, body={"error": {"code": 412, "message": "Labels fingerprint is not the current one"}}
    )
    assert classify_http(answer).verdict is Verdict.RETRY
