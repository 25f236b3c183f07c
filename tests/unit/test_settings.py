"""The plane's settings: what is read from where, and that a wrong one is named before anything runs with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtender.errors import Rejected
from runtender.model import LiveLimit
from runtender.settings import Settings

LEAST = {"SF_PROJECT_ID": "p", "SF_CODE_BUCKET": "code"}


def test_two_variables_make_a_plane():
    settings = Settings.from_env(LEAST)

    assert (settings.status_bucket, settings.cells_prefix) == ("code", "gs://code/artifacts")
    assert (settings.backend, settings.time_scale, settings.run_limit) == ("google", 1.0, timedelta(days=1))


def test_results_lie_in_the_warehouse_where_there_is_one():
    settings = Settings.from_env({**LEAST, "SF_WAREHOUSE_URI": "gs://wh/warehouse/"})

    assert settings.cells_prefix == "gs://wh/warehouse/artifacts"


def test_a_variable_of_blanks_is_as_good_as_none():
    assert Settings.from_env({**LEAST, "SF_REGION": " ", "SF_TIME_SCALE": ""}) == Settings.from_env(LEAST)


def test_a_faster_world_divides_every_span_alike():
    slow, fast = Settings.from_env(LEAST), Settings.from_env({**LEAST, "SF_TIME_SCALE": "20"})

    assert fast.run_limit == slow.run_limit / 20
    assert fast.timing.boot_limit == slow.timing.boot_limit / 20
    assert fast.timing.tick == slow.timing.tick / 20


def test_all_that_is_wrong_is_named_at_once():
    with pytest.raises(Rejected) as caught:
        Settings.from_env({"SF_BACKEND": "aws", "SF_GUEST_SELF_DELETE": "maybe"})

    named = [fault.field for fault in caught.value.faults]
    assert named == ["SF_PROJECT_ID", "SF_CODE_BUCKET", "SF_GUEST_SELF_DELETE", "SF_BACKEND"]
    assert all(fault.remedy for fault in caught.value.faults)


def test_images_are_allowed_by_registries_and_folders():
    settings = Settings.from_env({**LEAST, "SF_IMAGE_ALLOW": " ghcr.io/team/ ,us-docker.pkg.dev/p,"})

    assert settings.image_allow == ("ghcr.io/team/", "us-docker.pkg.dev/p")
    assert (Settings.from_env(LEAST).image_allow, Settings.from_env(LEAST).require_digest) == ((), False)


@pytest.mark.parametrize("place", ["us-central1", "us", "global", "{region}"])
def test_a_disks_key_lies_in_a_place_or_in_each_region(place):
    key = f"projects/p/locations/{place}/keyRings/r/cryptoKeys/k"

    assert Settings.from_env({**LEAST, "SF_KMS_KEY": key}).kms_key == key


def test_a_stall_grace_of_zero_switches_the_watchdog_off():
    assert Settings.from_env({**LEAST, "SF_STALL_GRACE_S": "0"}).timing.stall_grace == timedelta()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("SF_BOOT_LIMIT_S", "ten", id="a word for a number"),
        pytest.param("SF_BOOT_LIMIT_S", "-1", id="a negative span"),
        pytest.param("SF_BOOT_LIMIT_S", "1e3", id="a number in another notation"),
        pytest.param("SF_BOOT_LIMIT_S", "99999999999999999999", id="a span beyond the calendar"),
        pytest.param("SF_BATCH_JOB_WAIT_S", "99999999999999999999", id="a run limit beyond the calendar"),
        pytest.param("SF_BATCH_JOB_WAIT_S", "9" * 5000, id="a number of five thousand digits"),
        pytest.param("SF_BATCH_JOB_WAIT_S", "0", id="no time to run"),
        pytest.param("SF_TICK_BUDGET_S", "0", id="ticks that look at nothing"),
        pytest.param("SF_PROVISION_WAIT_S", "100000", id="a wait that outlives the function"),
        pytest.param("SF_WATCH_INTERVAL_S", "0", id="jobs that are always due"),
        pytest.param("SF_API_BUDGET", "0", id="no creates at all"),
        pytest.param("SF_TIME_SCALE", "fast", id="a word for a scale"),
        pytest.param("SF_TIME_SCALE", "0", id="a world that stands still"),
        pytest.param("SF_TIME_SCALE", "nan", id="a scale that is no number"),
        pytest.param("SF_TIME_SCALE", "1e-300", id="a world slower than the calendar lasts"),
        pytest.param("SF_TIME_SCALE", "1e300", id="a world in which no span is left"),
        pytest.param("SF_CODE_BUCKET", "gs://code", id="a bucket's URI for its name"),
        pytest.param("SF_STATUS_BUCKET", "status/runs", id="a folder for a bucket"),
        pytest.param("SF_WAREHOUSE_URI", "wh/warehouse", id="a warehouse without gs://"),
        pytest.param("SF_CELLS_PREFIX", "/artifacts", id="a prefix without a bucket"),
        pytest.param("SF_PLANE_ID", "Main Plane", id="a plane id that no label can hold"),
        pytest.param("SF_IMAGE_ALLOW", "my-project/worker", id="images of no registry"),
        pytest.param("SF_IMAGE_ALLOW", "ghcr.io, https://ghcr.io", id="an address for a registry"),
        pytest.param("SF_REQUIRE_DIGEST", "always", id="no truth value"),
        pytest.param("SF_KMS_KEY", "my-key", id="a key without its place"),
        pytest.param(
            "SF_KMS_KEY", "projects/p/locations/{zone}/keyRings/r/cryptoKeys/k", id="a key per zone"
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_to_write(name, value):
    with pytest.raises(Rejected) as caught:
        Settings.from_env({**LEAST, name: value})

    (fault,) = caught.value.faults
    assert fault.field == name
    assert fault.remedy
    assert len(str(fault)) < 300


def test_a_handler_need_not_wait_for_an_insert():
    assert Settings.from_env({**LEAST, "SF_PROVISION_WAIT_S": "0"}).timing.provision_wait == timedelta(0)


def test_limits_are_on_the_whole_plane_or_on_a_label():
    text = '[{"jobs": 20}, {"label": {"team": "demand"}, "vcpus": 64, "gpus": 4}]'
    assert Settings.from_env({**LEAST, "SF_LIMITS": text}).live_limits == (
        LiveLimit(jobs=20),
        LiveLimit(label=("team", "demand"), vcpus=64, gpus=4),
    )
    assert Settings.from_env(LEAST).live_limits == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("20", id="no list"),
        pytest.param("[20]", id="no limits in it"),
        pytest.param("[{}]", id="a limit on nothing"),
        pytest.param('[{"machines": 20}]', id="on what is not limited"),
        pytest.param('[{"jobs": -1}]', id="less than none"),
        pytest.param('[{"jobs": true}]', id="no number"),
        pytest.param('[{"jobs": 1, "label": "team"}]', id="a label without a value"),
        pytest.param('[{"jobs": 1, "label": {"a": "b", "c": "d"}}]', id="two labels"),
        pytest.param("[", id="no JSON"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused_by_name(text):
    with pytest.raises(Rejected, match="SF_LIMITS"):
        Settings.from_env({**LEAST, "SF_LIMITS": text})


def test_alternatives_are_lists_by_machine_type():
    text = '{"n2-standard-8": ["n2d-standard-8 spot", "same standard"], "*": []}'
    assert Settings.from_env({**LEAST, "SF_ALTERNATIVES": text}).alternatives == {
        "n2-standard-8": ("n2d-standard-8 spot", "same standard"),
        "*": (),
    }


@pytest.mark.parametrize("text", ['["a"]', '{"a": "b"}', '{"a": ["b cheap"]}', '{"a": [1]}', "{"])
def test_an_alternative_that_cannot_be_meant_is_refused_by_name(text):
    with pytest.raises(Rejected, match="SF_ALTERNATIVES"):
        Settings.from_env({**LEAST, "SF_ALTERNATIVES": text})
