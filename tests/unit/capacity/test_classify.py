"""Answers to creates: which verdict a status, a code or, failing these, words come to, and how far it reaches."""

from __future__ import annotations

from typing import Any

import pytest

from runtender.capacity.classify import KNOWN_CODES, classify_http, classify_operation, classify_text
from runtender.model import Scope, Verdict
from runtender.observed import Refusal
from runtender.ports import ApiAnswer

AGAIN = (Verdict.RETRY, Scope.ZONE)
TRANSIENT, CEILING, FAULT = Verdict.TRANSIENT_CAPACITY, Verdict.HARD_CEILING, Verdict.CONFIG_FAULT


def an_error(status: int, message: str, reason: str = "", **error: Any) -> ApiAnswer:
    errors = [{"message": message, "domain": "global", "reason": reason}] if reason else []
    return ApiAnswer(
        status=status, body={"error": {"code": status, "message": message, "errors": errors, **error}}
    )


def an_operation(code: str, message: str = "", status: int | None = None, **entry: Any) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "name": "operation-1",
        "status": "DONE",
        "error": {"errors": [{"code": code, "message": message, **entry}]},
    }
    return operation if status is None else {**operation, "httpErrorStatusCode": status}


def meaning(refusal: Refusal) -> tuple[Verdict, Scope]:
    return refusal.verdict, refusal.scope


@pytest.mark.parametrize(
    ("message", "exception", "verdict"),
    [
        pytest.param("the zone does not have enough resources", "", TRANSIENT, id="acceptance-F1-words"),
        pytest.param("ZONE_RESOURCE_POOL_EXHAUSTED", "", TRANSIENT, id="acceptance-F1-code"),
        pytest.param("Resources are insufficient in region: us-x1", "", TRANSIENT, id="acceptance-F1-region"),
        pytest.param(
            "The following quotas are exceeded: CustomModelTrainingT4GPUsPerProjectPerRegion",
            "",
            CEILING,
            id="acceptance-F2",
        ),
        pytest.param("Permission denied on resource project p", "", FAULT, id="acceptance-F3-permission"),
        pytest.param("Invalid argument: machine", "", FAULT, id="acceptance-F3-argument"),
        pytest.param("API has not been used in project p before", "", FAULT, id="acceptance-F3-api"),
        pytest.param("Billing is disabled for project p", "", FAULT, id="acceptance-F3-billing"),
        pytest.param("Image 1.2 can no longer be used to create new clusters", "", FAULT, id="acceptance-F4"),
        pytest.param("", "", TRANSIENT, id="acceptance-F5-empty"),
        pytest.param("Unexpected response.", "", TRANSIENT, id="acceptance-F5-unexpected"),
        pytest.param("An internal error occurred on your cluster", "", TRANSIENT, id="acceptance-F5-fault"),
        pytest.param(
            "Machine type n1-standard-8 is unavailable in the zone: out of resources",
            "",
            TRANSIENT,
            id="acceptance-F6",
        ),
        pytest.param(
            "Resource regions/r/networkAttachments/n was not found", "", CEILING, id="acceptance-F8"
        ),
        pytest.param("Nothing of that name", "NotFound", CEILING, id="acceptance-F9"),
        pytest.param("whatever", "ServiceUnavailable", TRANSIENT, id="unavailable by class"),
        pytest.param("whatever", "Forbidden", FAULT, id="forbidden by class"),
        pytest.param("held by x@p.iam.gserviceaccount.com", "", TRANSIENT, id="an address is not iam"),
    ],
)
@pytest.mark.parametrize(
    "spell", [str, str.upper, str.lower], ids=["as is", "acceptance-F7-upper", "acceptance-F7-lower"]
)
def test_words_alone(message: str, exception: str, verdict: Verdict, spell: Any) -> None:
    assert classify_text(spell(message), exception) is verdict


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(
            an_error(403, "no permission for x@p.iam.gserviceaccount.com", "forbidden"),
            (FAULT, Scope.PROJECT),
            id="acceptance-Z16-403",
        ),
        pytest.param(
            an_error(429, "Quota exceeded for limit 'Queries per minute'", "quotaExceeded"),
            (Verdict.RATE_LIMITED, Scope.PROJECT),
            id="acceptance-Z16-429",
        ),
        pytest.param(
            an_error(403, "Rate Limit Exceeded", "rateLimitExceeded"),
            (Verdict.RATE_LIMITED, Scope.PROJECT),
            id="403 rate",
        ),
        pytest.param(
            an_error(403, "Quota 'N2_CPUS' exceeded. Limit: 24.0 in region us-central1.", "quotaExceeded"),
            (CEILING, Scope.REGION),
            id="quota of a region",
        ),
        pytest.param(
            an_error(403, "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.", "quotaExceeded"),
            (CEILING, Scope.PROJECT),
            id="quota over all regions",
        ),
        pytest.param(
            an_error(503, "try later", "backendError", details=[{"reason": "ZONE_RESOURCE_POOL_EXHAUSTED"}]),
            (TRANSIENT, Scope.ZONE),
            id="a code that says stock-out beats a 503",
        ),
        pytest.param(an_error(503, "capacity", "backendError"), AGAIN, id="a 503 beats its words"),
        pytest.param(an_error(500, "Internal error", "internalError"), AGAIN, id="500"),
        pytest.param(ApiAnswer(status=0, text="connection reset"), AGAIN, id="no answer"),
        pytest.param(
            an_error(400, "The resource 'projects/p/zones/z/instances/a' is not ready", "resourceNotReady"),
            AGAIN,
            id="not ready yet",
        ),
        pytest.param(
            an_error(400, "Cluster is running incompatible operation operation-1", "failedPrecondition"),
            AGAIN,
            id="busy with another operation",
        ),
        pytest.param(
            an_error(
                400, "Machine type with name 'g2-standard-8' does not exist in zone 'us-x1-a'.", "invalid"
            ),
            (CEILING, Scope.ZONE),
            id="machine type not in the zone",
        ),
        pytest.param(
            an_error(
                404, "The resource 'zones/us-x1-a/acceleratorTypes/nvidia-l4' was not found", "notFound"
            ),
            (CEILING, Scope.ZONE),
            id="accelerator not in the zone",
        ),
        pytest.param(
            an_error(400, "The referenced subnetwork resource cannot be found.", "invalid"),
            (CEILING, Scope.REGION),
            id="subnet not in the region",
        ),
        pytest.param(
            an_error(400, "[n1-standard-8, nvidia-l4] features are not compatible", "badRequest"),
            (FAULT, Scope.PROJECT),
            id="a request that no zone can serve",
        ),
        pytest.param(
            an_error(404, "The resource 'projects/p/global/images/family/x' was not found", "notFound"),
            (FAULT, Scope.PROJECT),
            id="image missing",
        ),
        pytest.param(an_error(401, "Invalid Credentials", "authError"), (FAULT, Scope.PROJECT), id="401"),
        pytest.param(an_error(409, "already exists", "alreadyExists"), (Verdict.ADOPT, Scope.ZONE), id="409"),
        pytest.param(ApiAnswer(status=400, text="<html>"), (FAULT, Scope.PROJECT), id="no JSON at all"),
    ],
)
def test_an_http_error_is_read_by_code_then_name_then_status(
    answer: ApiAnswer, expected: tuple[Verdict, Scope]
) -> None:
    assert meaning(classify_http(answer)) == expected


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        pytest.param(an_operation("ZONE_RESOURCE_POOL_EXHAUSTED"), (TRANSIENT, Scope.ZONE), id="stock-out"),
        pytest.param(
            an_operation("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
            (TRANSIENT, Scope.ZONE),
            id="stock-out with details",
        ),
        pytest.param(an_operation("GCE_STOCKOUT"), (TRANSIENT, Scope.ZONE), id="stock-out in a node pool"),
        pytest.param(
            an_operation("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded.", 403),
            (CEILING, Scope.REGION),
            id="quota",
        ),
        pytest.param(
            an_operation(
                "QUOTA_EXCEEDED",
                "Quota exceeded.",
                403,
                errorDetails=[{"quotaInfo": {"limitName": "GPUS-ALL-REGIONS-per-project"}}],
            ),
            (CEILING, Scope.PROJECT),
            id="quota over all regions by its details",
        ),
        pytest.param(
            an_operation("RESOURCE_ALREADY_EXISTS", "exists", 409),
            (Verdict.GONE, Scope.ZONE),
            id="409 after a delete",
        ),
        pytest.param(
            an_operation("RESOURCE_OPERATION_RATE_EXCEEDED", "too fast", 403),
            AGAIN,
            id="operation rate",
        ),
        pytest.param(an_operation("PERMISSIONS_ERROR", "no", 403), (FAULT, Scope.PROJECT), id="permission"),
        pytest.param(
            an_operation("RESOURCE_NOT_FOUND", "The resource 'projects/p/zones/z/diskTypes/d' was not found"),
            (CEILING, Scope.ZONE),
            id="disk type not in the zone",
        ),
        pytest.param(
            an_operation("INTERNAL_ERROR", "Internal error. Please try again", 500),
            (TRANSIENT, Scope.ZONE),
            id="a failed operation left nothing to look up",
        ),
    ],
)
def test_an_operation_error_goes_through_the_same_table(
    operation: dict[str, Any], expected: tuple[Verdict, Scope]
) -> None:
    assert meaning(classify_operation(operation)) == expected


STOCK_OUT, IN_REGION = (TRANSIENT, Scope.ZONE), (CEILING, Scope.REGION)
RATE, NO = (Verdict.RATE_LIMITED, Scope.PROJECT), (FAULT, Scope.PROJECT)
EVERY_CODE = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": STOCK_OUT,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": STOCK_OUT,
    "insufficientCapacity": STOCK_OUT,
    "GCE_STOCKOUT": STOCK_OUT,
    "STOCKOUT": STOCK_OUT,
    "QUOTA_EXCEEDED": IN_REGION,
    "quotaExceeded": IN_REGION,
    "GCE_QUOTA_EXCEEDED": IN_REGION,
    "rateLimitExceeded": RATE,
    "RATE_LIMIT_EXCEEDED": RATE,
    "userRateLimitExceeded": RATE,
    "CONCURRENT_OPERATIONS_QUOTA_EXCEEDED": RATE,
    "resourceNotReady": AGAIN,
    "RESOURCE_NOT_READY": AGAIN,
    "RESOURCE_OPERATION_RATE_EXCEEDED": AGAIN,
    "OPERATION_RATE_EXCEEDED": AGAIN,
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": AGAIN,
    "PERMISSIONS_ERROR": NO,
    "PERMISSION_DENIED": NO,
    "accessNotConfigured": NO,
    "SERVICE_DISABLED": NO,
    "BILLING_DISABLED": NO,
}


def test_every_code_of_the_table_has_its_row_here() -> None:
    assert {code.replace("_", "").lower() for code in EVERY_CODE} == KNOWN_CODES


@pytest.mark.parametrize(("code", "expected"), EVERY_CODE.items(), ids=EVERY_CODE)
def test_a_code_means_the_same_wherever_it_comes_from(code: str, expected: tuple[Verdict, Scope]) -> None:
    """The words around it speak for something else each time; they are not asked."""
    words = "billing is disabled, iam, quota exceeded, out of resources"
    assert meaning(classify_http(an_error(403, words, code))) == expected
    assert (
        meaning(classify_http(an_error(503, words, "backendError", details=[{"reason": code}]))) == expected
    )
    assert meaning(classify_operation(an_operation(code, words))) == expected
    assert classify_operation(an_operation(code, words)).recognised


def test_an_unknown_code_is_taken_for_a_stock_out_and_says_that_it_is_unknown() -> None:
    refusal = classify_operation(an_operation("SOMETHING_NEW", "of a new kind"))
    assert refusal == Refusal(
        verdict=TRANSIENT,
        scope=Scope.ZONE,
        code="SOMETHING_NEW",
        message="SOMETHING_NEW: of a new kind",
        recognised=False,
    )


def test_a_recognised_code_is_the_one_that_is_reported_wherever_it_stood() -> None:
    refusal = classify_http(
        an_error(
            503,
            "sorry",
            "backendError",
            details=[{"reason": "resource_availability"}, {"reason": "STOCKOUT"}],
        )
    )
    assert (refusal.code, refusal.recognised) == ("STOCKOUT", True)


def test_zones_that_a_stock_out_recommends_are_kept_in_their_order() -> None:
    info = {
        "reason": "resource_availability",
        "metadatas": {"zonesAvailable": "us-central1-f, us-central1-a"},
    }
    operation = an_operation("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", errorDetails=[{"errorInfo": info}])
    assert classify_operation(operation).zones_available == ("us-central1-f", "us-central1-a")


def test_an_empty_recommendation_names_no_zone() -> None:
    info = {"reason": "resource_availability", "metadatas": {"zonesAvailable": ""}}
    operation = an_operation("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", errorDetails=[{"errorInfo": info}])
    assert classify_operation(operation).zones_available == ()


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F25")])
def test_a_long_message_is_cut() -> None:
    assert len(classify_http(an_error(400, "x" * 5000, "invalid")).message) == 2000


def test_the_wait_that_the_server_asks_for_is_passed_on() -> None:
    assert classify_http(ApiAnswer(status=429, retry_after_s=7.0)).retry_after_s == 7.0


@pytest.mark.parametrize(
    "body",
    [
        {"error": "text"},
        {"error": {"errors": "x", "details": {"a": 1}}},
        {"error": {"errors": [1], "details": [2]}},
    ],
    ids=["text", "wrong containers", "wrong members"],
)
def test_a_body_of_another_shape_still_gets_a_verdict(body: dict[str, Any]) -> None:
    assert classify_http(ApiAnswer(status=400, body=body)).verdict is FAULT
    assert classify_operation(body).verdict is TRANSIENT
