"""Where the local cloud finds what it runs: in a checkout beside the package, in an installed package inside it."""

from __future__ import annotations

from pathlib import Path

from runtender.local.errors import LocalCloudError

_LOCAL = Path(__file__).parent
_CHECKOUT = _LOCAL.parents[2]

FLIGHTS_CONFIG = _LOCAL / "examples" / "flights.json"
FLIGHTS_PANEL = _LOCAL / "examples" / "flights.csv.gz"


def functions_source() -> Path:
    """Return the file with the plane's entry points, the same that is deployed."""
    return _first(_LOCAL / "functions" / "main.py", _CHECKOUT / "functions" / "main.py")


def worker_package() -> Path:
    """Return the folder of the reference forecasting worker."""
    return _first(
        _LOCAL / "examples" / "forecast_worker", _CHECKOUT / "docker" / "worker" / "forecast_worker"
    )


def _first(*places: Path) -> Path:
    found = next((place for place in places if place.exists()), None)
    if found is None:
        looked = " and ".join(str(place) for place in places)
        raise LocalCloudError(f"nothing at {looked}; install runtender[local] again")
    return found
