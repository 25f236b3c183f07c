"""Images: there are none. Pulling one only decides whether a registry would have handed it out."""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path

from runtender.local.vm.layout import MachineHome

_GOOGLE = ("gcr.io", ".gcr.io", ".pkg.dev")


class PullError(Exception):
    """The registry's refusal, in docker's words."""


def pull(home: MachineHome, image: str) -> None:
    """Note an image as pulled; raises `PullError` for one that there is not, or that the caller may not have.

    Google's registries answer only to a caller whose docker is configured for them. An image whose name holds `missing`
    never exists.
    """
    host = image.partition("/")[0]
    if host.endswith(_GOOGLE) and host not in _configured_hosts():
        raise PullError(
            f'Error response from daemon: Head "https://{host}/v2/": denied: Unauthenticated request. '
            'Unauthenticated requests do not have permission "artifactregistry.repositories.downloadArtifacts"'
        )
    known = home.facts().images
    if "missing" in image or (known is not None and not any(fnmatchcase(image, one) for one in known)):
        raise PullError(
            f"Error response from daemon: manifest for {image} not found: manifest unknown: manifest unknown"
        )
    if not is_pulled(home, image):
        with home.images.open("a", encoding="utf-8") as pulled:
            pulled.write(image + "\n")


def is_pulled(home: MachineHome, image: str) -> bool:
    """Say whether an image is on the machine."""
    return home.images.exists() and image in home.images.read_text(encoding="utf-8").splitlines()


def _configured_hosts() -> frozenset[str]:
    """Return the hosts that docker's configuration names a credential helper for."""
    folder = os.environ.get("DOCKER_CONFIG") or os.path.join(os.environ.get("HOME", "/"), ".docker")  # noqa: PTH118
    try:
        document = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return frozenset()
    return frozenset(document.get("credHelpers", {}))
