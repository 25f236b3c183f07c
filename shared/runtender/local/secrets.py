"""The simulated Secret Manager: a secret is a file, and only machines and pods of the local cloud are told what it says.

Pods have no metadata server of their own here, so the token that they ask for first comes from the same place.
"""

from __future__ import annotations

import base64
import re
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from runtender.local.compute.state import GUEST_TOKEN
from runtender.local.http import (
    HttpRequest,
    HttpResponse,
    LocalAuthority,
    google_error,
    json_response,
    serve,
)

_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path
_VERSION = re.compile(r"/v1/(projects/[^/]+/secrets/([A-Za-z0-9_-]+)/versions/[A-Za-z0-9_-]+):access")


class SecretServer(AbstractContextManager["SecretServer"]):
    """Served on loopback ports; `folder/NAME` is every version of the secret NAME, in whichever project."""

    def __init__(self, folder: Path, *, authority: LocalAuthority) -> None:
        self._folder = folder
        self._plain = serve(self._answer)
        self._tls = serve(self._answer, tls=authority)
        self.tls_port = self._tls.port
        host = f"127.0.0.1:{self._plain.port}"
        self.variables = {"GCE_METADATA_HOST": host, "SF_SECRETMANAGER_ENDPOINT": f"http://{host}/v1"}
        """What leads a pod here."""

    def close(self) -> None:
        """Stop answering."""
        self._plain.close()
        self._tls.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == _TOKEN and request.headers.get("Metadata-Flavor") == "Google":
            return json_response(200, {"access_token": f"{GUEST_TOKEN}pod", "token_type": "Bearer"})
        version = _VERSION.fullmatch(request.path)
        if version is None:
            return google_error(404, "notFound", f"nothing is served at {request.path}")
        if not request.headers.get("Authorization", "").startswith(f"Bearer {GUEST_TOKEN}"):
            return google_error(403, "forbidden", f"no secretmanager.versions.access on {version[1]}")
        file = self._folder / version[2]
        if not file.is_file():
            return google_error(404, "notFound", f"{version[1]} is not there; write it into {file}")
        data = base64.b64encode(file.read_bytes()).decode()
        return json_response(200, {"name": version[1], "payload": {"data": data}})
