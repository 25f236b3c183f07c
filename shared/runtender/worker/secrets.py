"""Put secrets in the place of their names, then become another program. A pod runs this text, as `python -c <text> COMMAND...`.

Each variable of the environment that says `secret://projects/P/secrets/S/versions/V` gets that version's content, read from
Secret Manager as the worker's own account. The content is never on a command line or on a disk, and nobody but this worker
sees it. So the text stands alone: it needs the standard library.

2 says that a secret could not be read, with the reason on standard error; nothing was started then.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, NoReturn

SCHEME = "secret://"
INPUT_ERROR = 2

_SERVICE = "https://secretmanager.googleapis.com/v1"
_METADATA = "metadata.google.internal"
_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
_TRY_S = 10.0
# What passes by itself is waited for about a minute, as for an image.
_PAUSES_S = (1, 2, 4, 8, 16, 30)
_REMEDIES = {
    403: "let the worker's service account access it",
    404: "make it, or correct its name",
}
_PASSING = frozenset({408, 429, 500, 502, 503, 504})


class SecretUnavailable(Exception):
    """A secret could not be read; the message says which and why, and holds nothing of it."""


def resolve(environment: Mapping[str, str], read: Callable[[str], str]) -> dict[str, str]:
    """Return the environment with the content of each secret that it names."""
    return {
        name: read(value.removeprefix(SCHEME)) if value.startswith(SCHEME) else value
        for name, value in environment.items()
    }


class SecretManager:
    """Secret Manager as this machine's or pod's own account; GCE_METADATA_HOST is honoured, as by Google's clients."""

    def __init__(
        self, environment: Mapping[str, str], *, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self._metadata = environment.get("GCE_METADATA_HOST", "") or _METADATA
        self._service = environment.get("SF_SECRETMANAGER_ENDPOINT", "") or _SERVICE
        self._sleep = sleep

    def read(self, version: str) -> str:
        """Return the content of `projects/P/secrets/S/versions/V`; raises `SecretUnavailable`."""
        try:
            found = self._fetch(f"http://{self._metadata}/{_TOKEN}", {"Metadata-Flavor": "Google"})
            signed = {"Authorization": f"Bearer {found['access_token']}"}
            answer = self._fetch(f"{self._service}/{version}:access", signed)
            return base64.b64decode(answer["payload"]["data"]).decode()
        except urllib.error.HTTPError as error:
            remedy = _REMEDIES.get(error.code, "see that Secret Manager can be reached")
            raise SecretUnavailable(f"secret {version}: HTTP {error.code}; {remedy}") from error
        except (OSError, HTTPException, KeyError, TypeError, ValueError) as error:
            # An error's own words may quote the answer.
            raise SecretUnavailable(f"secret {version}: no proper answer ({type(error).__name__})") from None

    def _fetch(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        for pause in _PAUSES_S:
            try:
                return _get(url, headers)
            except urllib.error.HTTPError as error:
                if error.code not in _PASSING:
                    raise
            except OSError:
                # No answer: early on a node, its metadata server is not there yet.
                pass
            self._sleep(pause)
        return _get(url, headers)


def _get(url: str, headers: Mapping[str, str]) -> dict[str, Any]:
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - one of two known addresses
    with urllib.request.urlopen(request, timeout=_TRY_S) as answer:  # noqa: S310 - the same
        body = json.load(answer)
    return body if isinstance(body, dict) else {}


def main(command: list[str]) -> NoReturn:
    """Become `command`, in an environment that has the secrets."""
    try:
        environment = resolve(os.environ, SecretManager(os.environ).read)
    except SecretUnavailable as error:
        print(f"secrets: {error}", file=sys.stderr)
        sys.exit(INPUT_ERROR)
    os.execvpe(command[0], command, environment)  # noqa: S606 - the run's own command


if __name__ == "__main__":
    main(sys.argv[1:])
