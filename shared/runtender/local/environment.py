"""The environment of the local cloud's processes: the plane's settings, and where the simulated services listen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runtender.errors import Rejected
from runtender.settings import FASTEST, SLOWEST

PROJECT = "local"
"""The project, where nobody else may have one in the same place."""

CODE_BUCKET = "local-code"
WAREHOUSE_BUCKET = "local-warehouse"
REGION = "us-central1"
CLUSTER = "standing"
"""The cluster that is there for runs on GKE, in the same region."""

IMAGE = "us-docker.pkg.dev/local/runtender/worker:latest"
"""The worker image, as the simulated machines pull it: this machine's own worker environment."""

FLIGHTS_OBJECT = "panels/flights.csv.gz"
"""Where the example panel lies in the warehouse bucket."""

PLACES_OBJECT = "configs/compute_fallback.json"
"""Where the catalogue of places lies in the code bucket, if the plane may use other regions than its own."""

_PLANE: Mapping[str, str] = {
    "SF_REGION": REGION,
    "SF_CODE_BUCKET": CODE_BUCKET,
    "SF_WAREHOUSE_URI": f"gs://{WAREHOUSE_BUCKET}/warehouse",
    "SF_CONTAINER_IMAGE": IMAGE,
    # For runs that ask for GKE; it stands there for all others, too, and costs nothing.
    "SF_GKE_CLUSTER": CLUSTER,
    # Somebody is watching: what has landed is looked at with each tick instead of every ten minutes.
    "SF_WATCH_INTERVAL_S": "60",
}

# What a caller's shell may say about another plane, another project or a proxy.
_FOREIGN_PREFIXES = ("SF_", "GOOGLE_", "GCLOUD_", "CLOUDSDK_")
_FOREIGN_SUFFIXES = ("_PROXY", "_EMULATOR_HOST", "_METADATA_HOST")


@dataclass(frozen=True, kw_only=True, slots=True)
class Addresses:
    """Base URLs of the simulated services and of the functions; the backend has its own.

    `cluster_roots` is the authority that vouches for the names of simulated clusters.
    """

    storage: str
    compute: str
    container: str
    functions: str
    cluster_roots: Path


def checked_scale(time_scale: float) -> float:
    """Return `time_scale`; raises `Rejected` unless it leaves every span one."""
    if not SLOWEST <= time_scale <= FASTEST:
        problem = f"{time_scale:g} is not a number from {SLOWEST:g} to {FASTEST:g}"
        raise Rejected.because("time_scale", problem, "write e.g. 20")
    return time_scale


def plane_settings(
    time_scale: float,
    changes: Mapping[str, str] | None = None,
    *,
    regions: Sequence[str] = (),
    backend: str = "embedded",
    project: str = PROJECT,
) -> dict[str, str]:
    """Return the settings that do not depend on where anything listens, with a scenario's `changes`.

    `regions` are those that the plane may use beside its own; `places` is what its catalogue has to say then.
    """
    return {
        **_PLANE,
        **({"SF_COMPUTE_FALLBACK": f"gs://{CODE_BUCKET}/{PLACES_OBJECT}"} if regions else {}),
        "SF_BACKEND": backend,
        "SF_PROJECT_ID": project,
        "SF_COMPUTE_SA": f"worker@{project}.iam.gserviceaccount.com",
        "SF_SUBNETWORK_URI": _subnetwork(project, REGION),
        "SF_TIME_SCALE": f"{time_scale:g}",
        **(changes or {}),
    }


def places(project: str, regions: Sequence[str]) -> Mapping[str, Any]:
    """Return a catalogue of the plane's own region and others, each with all its zones and a subnet of its own."""
    return {"regions": {name: {"subnetwork_uri": _subnetwork(project, name)} for name in (REGION, *regions)}}


def plane_environment(
    settings: Mapping[str, str], at: Addresses, backend: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables by which functions and commands find the local cloud with these settings.

    `backend` are those of the backend: where its documents and topics are.
    """
    return {
        **settings,
        **backend,
        "SF_COMPUTE_ENDPOINT": f"{at.compute}/compute/v1",
        "SF_CONTAINER_ENDPOINT": f"{at.container}/v1",
        "SF_CLUSTER_ROOTS": str(at.cluster_roots),
        "STORAGE_EMULATOR_HOST": at.storage,
    }


def _subnetwork(project: str, region: str) -> str:
    return f"projects/{project}/regions/{region}/subnetworks/workers"


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a caller's environment without what would lead a process of ours out of the local cloud."""
    return {name: value for name, value in environment.items() if not _is_foreign(name.upper())}


def _is_foreign(name: str) -> bool:
    return name.startswith(_FOREIGN_PREFIXES) or name.endswith(_FOREIGN_SUFFIXES)
