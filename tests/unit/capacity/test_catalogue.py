"""A catalogue that is wrong says where."""

from __future__ import annotations

import json

import pytest

from runtender.capacity.catalogue import catalogue_faults

RIGHT = """{
  "regions": {
    "us-central1": {"zones": ["a", "us-central1-b"]},
    "europe-west4": {
      "zones": ["a"],
      "subnetwork_uri": "projects/p/regions/europe-west4/subnetworks/s"
    },
    "asia-east1": {"subnetwork_uri": null}
  }
}"""


def faults(text):
    return [str(fault) for fault in catalogue_faults(json.loads(text), text)]


def test_places_beyond_the_built_in_ones_are_right():
    assert faults(RIGHT) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        pytest.param('"regions"', '"region"', "line 2: region: is not a known key", id="no regions"),
        pytest.param('"asia-east1"', '"asia"', "line 8: regions.asia: is not a region's name", id="a region"),
        pytest.param(
            '"zones": ["a"]',
            '"zones": "a"',
            "line 5: regions.europe-west4.zones: 'a' is no list",
            id="no list",
        ),
        pytest.param(
            '["a", "us-central1-b"]',
            '["a", "us-east1-b"]',
            "line 3: regions.us-central1.zones: 'us-east1-b' is no zone of us-central1",
            id="another region's zone",
        ),
        pytest.param(
            "projects/p/regions/europe-west4",
            "projects/p/regions/europe-west1",
            "line 6: regions.europe-west4.subnetwork_uri: is a subnet of europe-west1",
            id="another region's subnet",
        ),
        pytest.param(
            "projects/p/regions/europe-west4/subnetworks/s",
            "default",
            "line 6: regions.europe-west4.subnetwork_uri: 'default' is no subnet",
            id="no subnet",
        ),
        pytest.param(
            '{"subnetwork_uri": null}', "[]", "line 8: regions.asia-east1: [] is no object", id="no object"
        ),
        pytest.param(
            '"subnetwork_uri": null',
            '"subnet": ""',
            "line 8: regions.asia-east1.subnet: is not a",
            id="a key",
        ),
    ],
)
def test_a_fault_is_told_by_its_line_and_field(old, new, told):
    assert old in RIGHT
    assert faults(RIGHT.replace(old, new))[0].startswith(told)


def test_all_faults_are_told_at_once():
    text = RIGHT.replace('["a"]', "[1]").replace('"asia-east1"', '"ASIA"')
    assert [fault.split(":")[0] for fault in faults(text)] == ["line 5", "line 8"]
