"""Which other machines may do a job's work."""

from __future__ import annotations

import pytest

from runtender.errors import Rejected
from runtender.forecast.alternatives import machine_of, with_alternatives
from runtender.forecast.machines import SHIPPED
from runtender.model import Placement
from runtender.settings import Settings

PLACES = tuple(Placement(region="us-x1", zone=f"us-x1-{letter}", subnetwork_uri="s") for letter in "ab")


def placements(told, machine_type="n2-standard-8", *, spot=False, accelerators=0):
    settings = Settings(
        project="p", code_bucket="c", status_bucket="c", cells_prefix="gs://c/a", alternatives=told
    )
    own = machine_of(machine_type, SHIPPED, accelerators=accelerators, spot=spot)
    return [one.label for one in with_alternatives(PLACES, own, settings, SHIPPED, accelerators=accelerators)]


@pytest.mark.parametrize(
    ("told", "labels"),
    [
        pytest.param({}, ["a", "b"], id="none are told"),
        pytest.param({"c2-standard-8": ("c3-standard-8",)}, ["a", "b"], id="those of another machine"),
        pytest.param(
            {"n2-standard-8": ("n2d-standard-8", "same spot")},
            [
                "a",
                "b",
                "a n2d-standard-8",
                "b n2d-standard-8",
                "a n2-standard-8 spot",
                "b n2-standard-8 spot",
            ],
            id="each in every place, in their order",
        ),
        pytest.param(
            {"*": ("same spot",)}, ["a", "b", "a n2-standard-8 spot", "b n2-standard-8 spot"], id="any"
        ),
        pytest.param({"*": ("same spot",), "n2-standard-8": ()}, ["a", "b"], id="its own list counts"),
        pytest.param({"*": ("same", "same standard", "n2-standard-8")}, ["a", "b"], id="the own one again"),
    ],
)
def test_they_stand_behind_the_plans_own(told, labels):
    assert placements(told) == [f"us-x1/us-x1-{label}" for label in labels]


def test_a_spot_jobs_alternatives_are_spot_unless_told_otherwise():
    found = placements({"*": ("n2d-standard-8", "same standard")}, spot=True)
    assert found[2:] == [
        "us-x1/us-x1-a n2d-standard-8 spot",
        "us-x1/us-x1-b n2d-standard-8 spot",
        "us-x1/us-x1-a n2-standard-8",
        "us-x1/us-x1-b n2-standard-8",
    ]


@pytest.mark.parametrize(
    ("told", "options", "words"),
    [
        pytest.param("n2-standard-4", {}, "it is smaller", id="fewer vCPUs"),
        pytest.param("n2-highcpu-8", {}, "it is smaller", id="less memory"),
        pytest.param("g2-standard-8", {}, "GPUs has no substitute", id="GPUs nobody asked for"),
        pytest.param(
            "n1-standard-16",
            {"machine_type": "n1-standard-8", "accelerators": 1},
            "GPUs has no substitute",
            id="another machine under the GPUs",
        ),
    ],
)
def test_one_that_cannot_do_the_work_is_a_fault_of_the_setting(told, options, words):
    with pytest.raises(Rejected, match=words):
        placements({"*": (told,)}, **options)
