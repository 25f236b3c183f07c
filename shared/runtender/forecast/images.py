"""Which container images a plane runs: those of the registries it allows, pinned where it asks for that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runtender.forecast.validation import FieldReader, shown
from runtender.settings import Settings

_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")
# What Docker puts before a name that names no registry.
_DOCKER_HUB = "docker.io"


def check_image(reader: FieldReader, settings: Settings, image: str) -> None:
    """Fault an image from nowhere that the plane allows, or one that can become another under the same name."""
    allowed = settings.image_allow
    if allowed and not any(_lies_below(full_name(image), prefix) for prefix in allowed):
        problem = f"{shown(image)} is in no registry that this plane takes images from"
        reader.fault("image", problem, f"use one below {', '.join(allowed)}, or extend SF_IMAGE_ALLOW")
    if settings.require_digest and not _DIGEST.fullmatch(image):
        problem = f"{shown(image)} is not pinned by its digest"
        reader.fault("image", problem, "write NAME@sha256:..., or unset SF_REQUIRE_DIGEST")


def check_images(settings: Settings, images: Iterable[str]) -> None:
    """Raise `Rejected` for images that were accepted once and would not be any more."""
    reader = FieldReader()
    for image in dict.fromkeys(images):
        check_image(reader, settings, image)
    reader.finish()


def full_name(image: str) -> str:
    """Return an image's name with the registry that Docker pulls it from."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return image
    return f"{_DOCKER_HUB}/{image}" if slash else f"{_DOCKER_HUB}/library/{image}"


def _lies_below(image: str, prefix: str) -> bool:
    # `example.com/team` is a folder or a whole name, and no beginning of `example.com/team-of-others`.
    rest = image.removeprefix(prefix)
    return rest != image and (prefix.endswith("/") or not rest or rest[0] in "/:@")
