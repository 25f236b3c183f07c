"""The metadata server that each machine has for itself: identity, attributes, and the news of its preemption."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any
from zlib import crc32

from runtender.local.compute.events import Booted
from runtender.local.compute.state import GUEST_TOKEN
from runtender.local.http import HttpRequest, HttpResponse

_BASE = "/computeMetadata/v1"
_FLAVOR = "Metadata-Flavor"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_TOKEN_LIFETIME_S = 3599
_LONGEST_WAIT_S = 3600.0

# A value, a list of values, or a folder of entries.
_Entry = str | list[str] | dict[str, Any]


class MetadataServer:
    """Answers one machine. Thread-safe: a request that waits for a change holds up no other."""

    def __init__(self, machine: Booted, *, project_number: int = 123456789012) -> None:
        self._changed = threading.Condition()
        self._preempted = False
        self._closed = False
        self._tree = _tree(machine, project_number)

    def preempt(self) -> None:
        """Tell the machine that it is taken away."""
        with self._changed:
            self._preempted = True
            self._changed.notify_all()

    def close(self) -> None:
        """Let everybody go who waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def handle(self, request: HttpRequest) -> HttpResponse:
        """Answer one request."""
        if request.headers.get(_FLAVOR) != "Google":
            return _answer(403, "Missing Metadata-Flavor:Google header.", "text/html")
        path = request.path.removeprefix(_BASE).strip("/")
        if request.query.get("wait_for_change", "").lower() == "true":
            self._await_change(path, request)
        entry = self._lookup(path)
        if entry is None:
            return _answer(404, "The requested URL was not found on this server.", "text/html")
        content_type, text = _show(
            path, entry, recursive=request.query.get("recursive", "").lower() == "true"
        )
        return _answer(200, text, content_type, {"ETag": _tag(entry)})

    def _lookup(self, path: str) -> _Entry | None:
        if path == "instance/preempted":
            return "TRUE" if self._preempted else "FALSE"
        entry: _Entry | None = self._tree
        for part in path.split("/") if path else ():
            entry = entry.get(part) if isinstance(entry, dict) else None
        return entry

    def _await_change(self, path: str, request: HttpRequest) -> None:
        timeout = min(float(request.query.get("timeout_sec", _LONGEST_WAIT_S)), _LONGEST_WAIT_S)
        with self._changed:
            # Without the tag of what the caller has seen, a change that came before the call is missed, as in the cloud.
            seen = request.query.get("last_etag") or _tag(self._lookup(path))
            self._changed.wait_for(lambda: self._closed or _tag(self._lookup(path)) != seen, timeout)


def _show(path: str, entry: _Entry, *, recursive: bool) -> tuple[str, str]:
    """Return the content type and the text of an entry."""
    if isinstance(entry, str):
        return "application/json" if path.endswith("/token") else "application/text", entry
    if isinstance(entry, list):
        return "application/text", "\n".join(entry)
    if recursive:
        # Tokens are handed out one by one only.
        return "application/json", json.dumps({name: one for name, one in entry.items() if name != "token"})
    names = (f"{name}/" if isinstance(one, dict) else name for name, one in entry.items())
    return "application/text", "".join(f"{name}\n" for name in names)


def _tree(machine: Booted, project_number: int) -> dict[str, _Entry]:
    # A machine without an account has no token to give: as on a real one, its uploads then fail.
    accounts: dict[str, _Entry] = {}
    if machine.service_account:
        account: dict[str, _Entry] = {
            "aliases": ["default"],
            "email": machine.service_account,
            "scopes": list(_SCOPES),
            "token": _token(machine.name),
        }
        accounts = {"default": account, machine.service_account: account}
    instance: dict[str, _Entry] = {
        "id": machine.instance_id,
        "name": machine.name,
        "hostname": f"{machine.name}.{machine.zone}.c.{machine.project}.internal",
        "zone": f"projects/{project_number}/zones/{machine.zone}",
        "attributes": dict(machine.metadata),
        "service-accounts": accounts,
    }
    project: dict[str, _Entry] = {
        "project-id": machine.project,
        "numeric-project-id": str(project_number),
    }
    return {"instance": instance, "project": project}


def _token(name: str) -> str:
    token = {"access_token": f"{GUEST_TOKEN}{name}", "expires_in": _TOKEN_LIFETIME_S, "token_type": "Bearer"}
    return json.dumps(token, separators=(",", ":"))


def _tag(entry: _Entry | None) -> str:
    return f"{crc32(json.dumps(entry).encode()):08x}"


def _answer(status: int, text: str, content_type: str, more: Mapping[str, str] | None = None) -> HttpResponse:
    headers = {"Content-Type": content_type, _FLAVOR: "Google", **(more or {})}
    return HttpResponse(status=status, headers=headers, body=text.encode())
