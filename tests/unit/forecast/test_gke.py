"""The planner on Kubernetes: modes, clusters, workers, and what a region's quota must have."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from runtender.capacity.candidates import built_in_regions, cluster_candidates
from runtender.capacity.demands import demands_of
from runtender.errors import Rejected
from runtender.forecast.config import parse_config
from runtender.forecast.cost import estimate
from runtender.forecast.gke import plan_json
from runtender.forecast.gke_run import ClusterName, cluster_wanted
from runtender.forecast.machines import SHIPPED
from runtender.forecast.prices import shipped_prices
from runtender.observed import ClusterFacts

L4 = {"use_gpu": True, "gpu_type": "L4"}


@pytest.fixture
def plan(plan):
    """Plan a run on Kubernetes, whether this plane serves it or not."""
    return partial(plan, python_runtime="gke", only_served=False)


@pytest.fixture
def faults(plan):
    def build(**arguments):
        with pytest.raises(Rejected) as rejected:
            plan(**arguments)
        return {fault.field for fault in rejected.value.faults}

    return build


@pytest.mark.parametrize("mode", [pytest.param("batch", id="acceptance-D13")])
def test_only_two_modes_are_known(faults, mode):
    assert faults(request={"overrides": {"statistical": {"gke_mode": mode}}}) == {
        "overrides.statistical.gke_mode"
    }


@pytest.mark.parametrize("regions", [pytest.param(("us-central1", "us-east1"), id="acceptance-D15")])
def test_named_regions_are_tried_in_their_order(regions):
    places = cluster_candidates("us-central1", "s", built_in_regions(), regions)
    assert {place.region for place in places} == set(regions)
    assert (places[0].region, places[0].subnetwork_uri, places[-1].subnetwork_uri) == ("us-central1", "s", "")


def test_a_region_nobody_knows_is_tried_in_its_zone_a():
    (place,) = cluster_candidates("us-central1", "s", built_in_regions(), ["europe-west4"])
    assert place.zone == "europe-west4-a"


@pytest.mark.parametrize("units", [pytest.param(2, id="acceptance-D12")])
def test_a_pool_takes_cores_and_gpus_of_the_quota(plan, units):
    planned = plan(models=["tide", "tsmixer"], compute={**L4, "workers": units})["deep_learning"]
    asked = {demand.meter.name: demand.amount(units) for demand in demands_of(planned)}
    assert (asked["CPUS"], asked["NVIDIA_L4_GPUS"]) == (16, 2)


@pytest.mark.parametrize(
    ("config", "request_fields", "variables", "cluster"),
    [
        pytest.param({}, {}, {"SF_GKE_CLUSTER": "c1"}, "c1", id="settings"),
        pytest.param(
            {"compute": {"gke_cluster_name": "c2"}}, {}, {"SF_GKE_CLUSTER": "c1"}, "c2", id="config"
        ),
        pytest.param(
            {"compute": {"gke_cluster_name": "c2"}},
            {"overrides": {"statistical": {"cluster_name": "c3"}}},
            {},
            "c3",
            id="message",
        ),
        pytest.param(
            {"compute": {"gke_mode": "ray", "ray_cluster_name": "c4"}},
            {},
            {},
            "c4",
            id="Ray's name in mode ray",
        ),
    ],
)
def test_a_cluster_that_somebody_named_stands(plan, config, request_fields, variables, cluster):
    planned = plan(request=request_fields, variables=variables, **config)["statistical"]
    named = planned.kubernetes
    assert (named.cluster_name, named.ephemeral, named.pools) == (cluster, False, ())


def test_rays_cluster_name_means_nothing_to_an_indexed_job(plan):
    assert plan(compute={"ray_cluster_name": "c4"})["statistical"].kubernetes.ephemeral


def test_workers_that_could_have_nothing_to_do_are_not_made(plan):
    data = {"source_table": "gs://panels/p.csv", "series_limit": 3}
    planned = plan(data=data, compute={"workers": 8})["statistical"]
    assert (planned.kubernetes.requested_workers, planned.worker_count) == (8, 3)


def test_ray_on_gke_is_the_same_as_gke_in_mode_ray(plan):
    by_ray = plan(python_runtime="ray", compute={"ray_mode": "gke"})["statistical"]
    by_gke = plan(compute={"gke_mode": "ray"})["statistical"]
    assert (
        (by_ray.kubernetes.mode, by_ray.runtime) == (by_gke.kubernetes.mode, by_gke.runtime) == ("ray", "gke")
    )


def test_ray_on_vertex_is_refused_by_name(faults):
    assert faults(python_runtime="ray") == {"compute.ray_mode"}


def test_a_ray_job_is_planned_on_the_machines_of_its_pool(plan):
    planned = plan(models=["tide"], compute={**L4, "gke_mode": "ray"})["deep_learning"]
    assert planned.machine_type == planned.kubernetes.ray.gpu.machine_type == "g2-standard-8"


def test_a_machine_that_cannot_carry_the_gpu_is_refused(faults):
    compute = {**L4, "gke_mode": "ray", "ray_gpu_machine_type": "n1-standard-16"}
    assert faults(models=["tide"], compute=compute) == {"overrides.deep_learning"}


def test_the_telemetry_of_a_plan_has_the_specified_keys_and_no_identity(plan):
    document = plan_json(plan()["statistical"])
    assert "service_account" not in document
    assert document["ray_cluster_plan"] is None
    assert document["job_name"] == plan()["statistical"].name


def test_all_families_are_planned_under_names_of_their_own(plan):
    plans = plan(models=["theta", "xgboost", "tide"], compute=L4)
    assert list(plans) == ["statistical", "ml", "deep_learning"]
    assert len({planned.kubernetes.cluster_name for planned in plans.values()}) == 3


def standing(**changes):
    found = ClusterFacts(
        name="c1",
        full_name="projects/p/locations/us-east1-b/clusters/c1",
        location="us-east1-b",
        status="RUNNING",
        has_endpoint=True,
        server_minor=33,
        machine_types=("n2-standard-8",),
    )
    return {ClusterName("c1", None): replace(found, **changes)}


@pytest.mark.parametrize(
    ("location", "place"),
    [
        pytest.param("us-east1-b", ("us-east1", "us-east1-b"), id="zonal"),
        pytest.param("us-east1", ("us-east1", None), id="regional"),
    ],
)
def test_a_standing_cluster_is_the_only_place_and_no_question_of_quota(plan, location, place):
    planned = plan(clusters=standing(location=location), variables={"SF_GKE_CLUSTER": "c1"})["statistical"]
    assert [(one.region, one.zone) for one in planned.placements] == [place]
    assert planned.kubernetes.cluster_location == location
    assert planned.kubernetes.server_minor == 33
    assert not planned.walk.preflight


@pytest.mark.parametrize(
    ("nodes", "autopilot", "expected"),
    [
        pytest.param(("n2-standard-8",), False, "", id="the plan's own"),
        pytest.param(("e2-standard-4",), False, "e2-standard-4", id="the only one"),
        pytest.param(("e2-standard-4", "n2-standard-32", "n2-standard-16"), False, "n2-standard-16",
                     id="the smallest that is large enough"),
        pytest.param(("e2-standard-2", "e2-standard-4"), False, "e2-standard-4", id="none is: the largest"),
        pytest.param(("custom-x",), False, "", id="unknown"),
        pytest.param((), True, "", id="Autopilot"),
    ],
)  # fmt: skip
def test_pods_are_made_for_the_nodes_that_there_are(plan, nodes, autopilot, expected):
    planned = plan(
        clusters=standing(machine_types=nodes, autopilot=autopilot),
        variables={"SF_GKE_CLUSTER": "c1"},
        compute={"machine_type": "n2-standard-8"},
    )["statistical"]
    assert planned.kubernetes.node_machine_type == expected


def test_what_cannot_be_run_yet_is_refused_by_the_plane_and_only_there(faults):
    assert faults(only_served=True) == {"compute.gke_cluster_name"}
    ray = {"compute": {"gke_mode": "ray"}, "variables": {"SF_GKE_CLUSTER": "c1"}}
    assert faults(only_served=True, **ray) == {"compute.gke_mode"}


def test_families_of_one_run_may_be_placed_on_a_vm_and_on_kubernetes(plan):
    plans = plan(
        models=["theta", "xgboost"],
        python_runtime="gce",
        compute={"families": {"ml": {"runtime": "gke", "gke_cluster_name": "c1"}}},
        clusters=standing(),
    )
    assert {family: one.runtime for family, one in plans.items()} == {"statistical": "gce", "ml": "gke"}
    assert plans["statistical"].kubernetes is None


def test_a_job_on_a_standing_cluster_needs_no_vms_account_or_subnet(plan):
    variables = {"SF_COMPUTE_SA": "", "SF_SUBNETWORK_URI": "", "SF_GKE_CLUSTER": "c1"}
    assert plan(clusters=standing(), variables=variables)


NOT_NAMES = [
    "standing?x=1",
    "x/../standing",
    "../../local/locations/us-central1/clusters/standing",
    "St",
    "a" * 41,
]


@pytest.mark.parametrize("name", NOT_NAMES)
def test_a_cluster_is_named_by_a_name(config_json, a_request, name):
    with pytest.raises(Rejected) as rejected:
        parse_config(config_json(compute={"gke_cluster_name": name}))
    assert [fault.field for fault in rejected.value.faults] == ["compute.gke_cluster_name"]


@pytest.mark.parametrize("field", ["cluster_name", "cluster_location"])
@pytest.mark.parametrize("name", NOT_NAMES[:3])
def test_nothing_is_asked_of_a_place_that_cannot_be_one(faults, a_config, a_request, a_plane, field, name):
    override = {"overrides": {"statistical": {field: name}}}
    variables = {"SF_GKE_CLUSTER": "c1"}
    config = a_config(python_runtime="gke")
    asked = cluster_wanted(config, a_request(**override), a_plane(**variables), "statistical", SHIPPED)
    assert asked is None
    assert faults(request=override, variables=variables) == {f"overrides.statistical.{field}"}


@pytest.mark.parametrize("name", ["Bad_NS", "a/../b", "-a", "a" * 64])
def test_a_namespace_is_named_as_kubernetes_names_it(config_json, name):
    with pytest.raises(Rejected):
        parse_config(config_json(compute={"gke_namespace": name}))


def test_a_cluster_that_stands_twice_is_named_with_its_place(plan):
    named = ClusterName("c1", "us-east1-b")
    clusters = {named: standing()[ClusterName("c1", None)]}
    planned = plan(clusters=clusters, variables={"SF_GKE_CLUSTER": "us-east1-b/c1"})["statistical"]
    assert (planned.kubernetes.cluster_name, planned.kubernetes.server_minor) == ("c1", 33)


def test_more_workers_than_a_job_can_count_are_refused(config_json):
    with pytest.raises(Rejected):
        parse_config(config_json(compute={"workers": 100_001}))


def test_a_standing_cluster_that_was_not_looked_up_is_no_question_of_quota_either(plan):
    assert not plan(variables={"SF_GKE_CLUSTER": "c1"})["statistical"].walk.preflight


def test_a_pod_costs_the_node_that_it_has_to_itself(plan):
    small = {"machine_type": "n2-standard-4"}
    own, larger = (
        plan(clusters=standing(machine_types=(nodes,), location="us-central1"), compute=small,
             variables={"SF_GKE_CLUSTER": "c1"})["statistical"]
        for nodes in ("n2-standard-4", "n2-standard-8")
    )  # fmt: skip
    prices = shipped_prices()
    hourly = [estimate(one, prices, SHIPPED).hourly_usd or 0.0 for one in (own, larger)]
    assert hourly[1] > 1.5 * hourly[0] > 0
