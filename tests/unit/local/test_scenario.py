"""Scenario files: what they can say, and how they are refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.errors import Rejected
from runtender.local.scenario import Scenario, Shape, Stockout, load_scenario, parse_scenario

TEXT = """
name: first-placement-dry
description: The first zone is dry for ten minutes.
compute:
  stockouts:
    - placement: 0
      until: 10m
      answer: http
      zones_available: [us-central1-b]
    - {zone: us-central1-b, region: us-central1, attempt: 2, first: 3, after: 90s}
"""


def test_a_scenario_says_who_finds_no_machine_and_when(tmp_path):
    path = tmp_path / "dry.yaml"
    path.write_text(TEXT)
    assert load_scenario(path) == Scenario(
        name="first-placement-dry",
        description="The first zone is dry for ten minutes.",
        stockouts=(
            Stockout(
                placement=0, until=timedelta(minutes=10), shape=Shape.HTTP, zones_available=("us-central1-b",)
            ),
            Stockout(
                zone="us-central1-b", region="us-central1", attempt=2, first=3, after=timedelta(seconds=90)
            ),
        ),
    )


def test_a_scenario_may_be_fair_weather():
    assert parse_scenario("name: fair") == Scenario()


BAD = {
    "an unknown key": ("{name: x, weather: {}}", "weather: is not known; use one of compute, description, name"),
    "an unknown rule": ("compute: {stockouts: [{zones: a}]}", "compute.stockouts[0].zones: is not known"),
    "a number for a duration": ("compute: {stockouts: [{until: 10}]}", "compute.stockouts[0].until: 10 is not a duration"),
    "an unknown answer": ("compute: {stockouts: [{answer: no}]}", "compute.stockouts[0].answer: False is not known"),
    "text for a number": ("compute: {stockouts: [{first: few}]}", "compute.stockouts[0].first: 'few' is not a whole"),
    "one entry for a list": ("compute: {stockouts: {}}", "compute.stockouts: is not a list"),
    "a list for a mapping": ("compute: []", "compute: [] is not a mapping"),
    "no YAML": ("{", "the scenario is not YAML"),
    "zones that are no list": ("compute: {stockouts: [{zones_available: a}]}", "zones_available: 'a' is not a list"),
    "nothing": ("", "None is not a mapping"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_a_bad_scenario_is_refused_by_the_path_of_the_fault(text, words):
    with pytest.raises(Rejected) as refused:
        parse_scenario(text)
    assert words in str(refused.value)


def test_all_faults_are_named_at_once():
    with pytest.raises(Rejected) as refused:
        parse_scenario("compute: {stockouts: [{first: -1, zone: 3}]}")
    assert len(refused.value.faults) == 2
