"""Policies of the walk: what each name stands for, what a config may change, and how long a pass is followed by a pause."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.capacity.policy import POLICIES, backoff, policy_for
from runtender.errors import Rejected
from runtender.model import WalkPolicy


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [
        pytest.param(
            WalkPolicy(
                backoff=timedelta(seconds=10), backoff_multiplier=3, backoff_max=timedelta(seconds=100)
            ),
            [0, 10, 30, 90, 100, 100],
            id="acceptance-F27",
        ),
        pytest.param(policy_for("gce"), [0, 45, 90, 180, 300, 300], id="acceptance-F28-gce"),
        pytest.param(policy_for("gke"), [0, 45, 90, 180, 300, 300], id="acceptance-F28-gke"),
    ],
)
def test_the_wait_grows_with_each_pass_up_to_its_cap(policy: WalkPolicy, seconds: list[float]) -> None:
    assert [backoff(policy, passes).total_seconds() for passes in range(6)] == seconds


def test_a_policy_without_a_cap_waits_at_most_a_day_however_many_passes_there_were() -> None:
    assert backoff(policy_for("gce", {"backoff_max_seconds": 0}), 100_000) == timedelta(days=1)


@pytest.mark.parametrize((), [pytest.param(id="acceptance-F29")])
def test_a_service_without_placements_has_no_policy() -> None:
    with pytest.raises(KeyError):
        policy_for("bigquery")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        pytest.param({"max_attempts": -1}, "compute.capacity.gce.max_attempts", id="acceptance-F30-negative"),
        pytest.param({"backoff_multiplier": 0.5}, "write 1 or more", id="acceptance-F30-multiplier"),
        pytest.param({"patience": 3}, "use one of max_attempts, ", id="acceptance-F30-unknown"),
    ],
)
def test_an_override_that_cannot_be_meant_is_rejected_by_name(override: dict[str, float], words: str) -> None:
    with pytest.raises(Rejected, match=words):
        policy_for("gce", override)


def test_every_fault_of_an_override_is_named_at_once() -> None:
    with pytest.raises(Rejected) as rejected:
        policy_for("gke", {"max_wall_seconds": -1, "backoff_seconds": -2})
    assert [fault.field for fault in rejected.value.faults] == [
        "compute.capacity.gke.max_wall_seconds",
        "compute.capacity.gke.backoff_seconds",
    ]


def test_only_what_an_override_names_changes() -> None:
    policy = policy_for("gce", {"max_attempts": 3, "max_wall_seconds": None, "backoff_seconds": 10})
    assert policy == WalkPolicy(
        max_attempts=3,
        max_wall=timedelta(seconds=2700),
        backoff=timedelta(seconds=10),
        backoff_max=timedelta(seconds=300),
    )


@pytest.mark.parametrize(
    ("override", "enabled", "passes"),
    [
        pytest.param({}, True, 0, id="any number of passes by default"),
        pytest.param({"max_passes": 4}, True, 4, id="as many as asked for"),
        pytest.param({"max_passes": 4}, False, 1, id="one pass when capacity is switched off"),
        pytest.param({"max_passes": 0}, False, 1, id="no passes asked for does not undo the switch"),
    ],
)
def test_passes_follow_the_switch_then_the_override(
    override: dict[str, float], enabled: bool, passes: int
) -> None:
    assert policy_for("gce", override, enabled=enabled).max_passes == passes


def test_the_table_holds_every_service_of_the_config() -> None:
    attempts = {service: policy.max_attempts for service, policy in POLICIES.items()}
    assert attempts == {
        "ray": 6,
        "vertex": 6,
        "gce": 8,
        "gke": 8,
        "dataproc_cluster": 8,
        "dataproc_serverless": 10,
    }
