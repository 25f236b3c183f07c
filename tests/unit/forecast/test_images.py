"""Which images a plane runs, checked before anything is made of them."""

from __future__ import annotations

import pytest

from runtender.errors import Rejected
from runtender.forecast.images import full_name
from runtender.forecast.task import parse_task, plan_task
from runtender.model import SubmitKind, WalkPolicy

DIGEST = "@sha256:" + "0a" * 32
OURS = "us-docker.pkg.dev/p/r/worker"


@pytest.mark.parametrize(
    ("allowed", "image"),
    [
        pytest.param("us-docker.pkg.dev/p", f"{OURS}:1", id="below a folder"),
        pytest.param("us-docker.pkg.dev/p/", f"{OURS}:1", id="below a folder with its slash"),
        pytest.param(OURS, f"{OURS}:1", id="a whole name and its tag"),
        pytest.param(OURS, f"{OURS}{DIGEST}", id="a whole name and its digest"),
        pytest.param(OURS, OURS, id="a whole name"),
        pytest.param("ghcr.io, us-docker.pkg.dev", f"{OURS}:1", id="one of several"),
        pytest.param("docker.io/library", "python:3.11", id="a name that Docker completes"),
        pytest.param("localhost:5000", "localhost:5000/worker", id="a registry with a port"),
        pytest.param("", "any/where:1", id="nothing is asked for"),
    ],
)
def test_an_image_of_an_allowed_registry_is_run(plan, allowed, image):
    planned = plan(request={"image": image}, variables={"SF_IMAGE_ALLOW": allowed})
    assert {job.image_uri for job in planned.values()} == {image}


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("us-docker.pkg.dev/pwned/r/worker:1", id="a folder whose name begins alike"),
        pytest.param("us-docker.pkg.dev.evil.example/p/worker", id="a registry whose name begins alike"),
        pytest.param("evil.example/us-docker.pkg.dev/p/worker", id="the name further behind"),
        pytest.param("python:3.11", id="a name that Docker completes"),
        pytest.param("us-docker.pkg.dev/P/r/worker", id="another case"),
    ],
)
def test_any_other_is_refused_with_where_to_take_it_from(faults, image):
    found = faults(request={"image": image}, variables={"SF_IMAGE_ALLOW": "us-docker.pkg.dev/p"})
    assert "us-docker.pkg.dev/p" in found["image"].remedy


@pytest.mark.parametrize(
    "image", [f"{OURS}:1", OURS, f"{OURS}@sha256:0a", f"{OURS}:1@md5:{'0' * 64}", DIGEST]
)
def test_where_digests_are_asked_for_a_name_that_can_change_is_refused(faults, image):
    found = faults(request={"image": image}, variables={"SF_REQUIRE_DIGEST": "true"})
    assert list(found) == ["image"]


def test_a_pinned_image_is_run(plan):
    for image in (OURS + DIGEST, f"{OURS}:1{DIGEST}"):
        planned = plan(request={"image": image}, variables={"SF_REQUIRE_DIGEST": "true"})
        assert {job.image_uri for job in planned.values()} == {image}


def test_a_task_names_its_image_under_the_same_rules(a_request, a_plane, zones):
    task = parse_task({"name": "n", "image": "evil.example/x:1"})
    settings = a_plane(SF_IMAGE_ALLOW="us-docker.pkg.dev/p", SF_REQUIRE_DIGEST="true")
    with pytest.raises(Rejected) as rejected:
        plan_task(task, a_request(kind=SubmitKind.TASK), settings, placements=zones, walk=WalkPolicy())
    assert [fault.field for fault in rejected.value.faults] == ["image", "image"]


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("python", "docker.io/library/python"),
        ("team/tool:1", "docker.io/team/tool:1"),
        ("ghcr.io/team/tool", "ghcr.io/team/tool"),
        ("localhost/tool", "localhost/tool"),
        ("host:5000/tool", "host:5000/tool"),
    ],
)
def test_a_short_name_is_dockers(image, name):
    assert full_name(image) == name
