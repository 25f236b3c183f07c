"""Quota as Google tells it, read from a real socket whose answers are scripted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.gcp.compute import RestApi
from runtender.gcp.serviceusage import GoogleQuota, effective_limit
from runtender.local.http import DROPPED, HttpResponse, json_response
from runtender.observed import Reading
from runtender.ports import Meter

CPUS = Meter(name="CPUS", metric="compute.googleapis.com/cpus")
N4 = Meter(name="N4_CPUS", metric="compute.googleapis.com/cpus_per_vm_family", dimension=("vm_family", "N4"))
GPUS = Meter(name="GPUS_ALL_REGIONS", metric="compute.googleapis.com/gpus_all_regions", everywhere=True)


def a_metric(*buckets):
    """A ConsumerQuotaMetric of one limit; buckets are (limit, region or None) pairs."""
    rows = [
        {"effectiveLimit": str(limit), **({"dimensions": {"region": region}} if region else {})}
        for limit, region in buckets
    ]
    return {"consumerQuotaLimits": [{"unit": "1/{project}/{region}", "quotaBuckets": rows}]}


def quotas(**rows):
    listed = [{"metric": name, "limit": limit, "usage": usage} for name, (limit, usage) in rows.items()]
    return json_response(200, {"quotas": listed})


SPECIFIED = a_metric((400, None), (12, "us-central1"), (2, "us-east1"))


@pytest.fixture
def quota(service, session, clock):
    api = RestApi(session, service.url, clock=clock, timeout=timedelta(seconds=2))
    return GoogleQuota("p", api, api, clock=clock)


@pytest.mark.parametrize(
    ("region", "limit"),
    [
        pytest.param("us-central1", 12, id="acceptance-G1 a region of its own"),
        pytest.param("us-east1", 2, id="acceptance-G1 another"),
        pytest.param("us-west1", 400, id="acceptance-G1 all others"),
    ],
)
def test_a_regions_own_bucket_wins(region, limit):
    assert effective_limit(SPECIFIED, region) == limit


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        pytest.param("12", 12, id="acceptance-G2"),
        pytest.param("-1", None, id="no limit at all"),
        pytest.param("many", None, id="no number"),
        pytest.param(None, None, id="nothing"),
    ],
)
def test_a_limit_is_written_as_text(text, limit):
    body = {"consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": text}]}]}
    assert effective_limit(body, "us-central1") == limit


def test_a_place_says_more_than_a_family_and_both_say_most():
    def bucket(limit, **dimensions):
        return {"effectiveLimit": str(limit), "dimensions": dimensions}

    buckets = [
        {"effectiveLimit": "1"},
        bucket(2, vm_family="N4"),
        bucket(3, region="r"),
        bucket(9, region="x"),
    ]
    both = [*buckets, bucket(4, region="r", vm_family="N4"), bucket(5, region="r", vm_family="C4")]

    def limit(of):
        return effective_limit({"consumerQuotaLimits": [{"quotaBuckets": of}]}, "r", ("vm_family", "N4"))

    assert [limit(buckets[:1]), limit(buckets[:2]), limit(buckets), limit(both)] == [1, 2, 3, 4]


def test_compute_engine_tells_limit_and_usage(service, quota):
    service.answers = [quotas(CPUS=(24.0, 8.0))]
    assert quota.read("us-x1", [CPUS]) == {"CPUS": Reading(limit=24, usage=8)}
    (request,) = service.requests
    assert request.path == "/projects/p/regions/us-x1"


def test_what_it_does_not_tell_service_usage_is_asked(service, quota):
    service.answers = [quotas(CPUS=(24, 8)), json_response(200, SPECIFIED)]
    assert quota.read("us-east1", [CPUS, N4])["N4_CPUS"] == Reading(limit=2)
    metric = "compute.googleapis.com%2Fcpus_per_vm_family"
    service_path = "/v1beta1/projects/p/services/compute.googleapis.com/consumerQuotaMetrics/"
    assert service.requests[1].path == service_path + metric


def test_what_counts_everywhere_is_asked_of_the_project(service, quota):
    service.answers = [quotas(CPUS=(24, 8)), quotas(GPUS_ALL_REGIONS=(1, 1))]
    assert quota.read("us-x1", [CPUS, GPUS])["GPUS_ALL_REGIONS"] == Reading(limit=1, usage=1)
    assert service.requests[1].path == "/projects/p"


@pytest.mark.parametrize((), [pytest.param(id="acceptance-G4")])
def test_two_regions_and_one_metric_are_one_call(service, quota):
    service.answers = [quotas(CPUS=(24, 8)), json_response(200, SPECIFIED), quotas(CPUS=(24, 8))]
    limits = [quota.read(region, [N4])["N4_CPUS"].limit for region in ("us-central1", "us-east1")]
    assert limits == [12, 2]
    assert sum("consumerQuotaMetrics" in request.path for request in service.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HttpResponse(status=403), id="acceptance-G3 not allowed"),
        pytest.param(HttpResponse(status=503), id="acceptance-G3 not there"),
        pytest.param(DROPPED, id="acceptance-G3 no answer"),
        pytest.param(HttpResponse(status=200, body=b"<html>"), id="acceptance-G3 no JSON"),
        pytest.param(json_response(200, {"quotas": "none"}), id="acceptance-G3 another shape"),
        pytest.param(
            json_response(200, {"quotaStatusWarning": {"code": "QUOTA_INFO_UNAVAILABLE"}, "quotas": [
                {"metric": "CPUS", "limit": 0, "usage": 0}]}),
            id="numbers that Google itself does not trust",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_not_known_and_not_asked_for_at_once(service, quota, answer):
    service.answers = [answer]
    assert quota.read("us-x1", [CPUS, N4, GPUS]) == {}
    asked = len(service.requests)
    assert quota.read("us-x1", [CPUS, N4, GPUS]) == {}
    assert len(service.requests) == asked


def test_a_burst_asks_once_and_the_next_one_anew(service, quota, clock):
    service.answers = [quotas(CPUS=(24, 8)), quotas(CPUS=(24, 16))]
    usages = [quota.read("us-x1", [CPUS])["CPUS"].usage for _ in range(3)]
    clock.sleep(11)
    usages.append(quota.read("us-x1", [CPUS])["CPUS"].usage)
    assert (usages, len(service.requests)) == ([8, 8, 8, 16], 2)
