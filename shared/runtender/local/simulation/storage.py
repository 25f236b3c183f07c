"""Cloud Storage as workers reach it in a simulated world: write-once objects, and the pauses between tries."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import quote

from runtender.local.http import HttpResponse

_PAUSES_S = (1, 2, 4, 8, 16, 30)
_CLIENT_TRIES = len(_PAUSES_S)


class Network(Protocol):
    """What carries a worker's calls."""

    def request(self, machine: str, method: str, url: str, body: bytes = b"") -> HttpResponse:
        """Send one HTTP request with the worker's token."""


class WorkerStorage:
    """Cloud Storage with the rights of one worker."""

    def __init__(self, machine: str, network: Network) -> None:
        self._machine = machine
        self._network = network

    def read(self, bucket: str, name: str, *, query: str = "alt=media") -> HttpResponse:
        """Ask for an object, once."""
        return self._network.request(
            self._machine, "GET", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}?{query}"
        )

    def create(self, bucket: str, name: str, body: bytes) -> HttpResponse:
        """Store an object that must not exist yet, once."""
        query = f"uploadType=media&ifGenerationMatch=0&name={quote(name, safe='')}"
        return self._network.request(self._machine, "POST", f"/upload/storage/v1/b/{bucket}/o?{query}", body)

    def upload(self, folder: str, name: str, body: bytes) -> None:
        """Store a result below a `gs://` folder; the storage client repeats what fails in passing."""
        bucket, _, prefix = folder.removeprefix("gs://").partition("/")
        for _ in range(_CLIENT_TRIES):
            if 0 < self.create(bucket, f"{prefix}/{name}", body).status < 500:
                return


def is_stored(answer: HttpResponse) -> bool:
    """True when an object is there, from this call or an earlier one. Who may not delete may not replace: that is a 403."""
    if answer.status == 403:
        return b"storage.objects.delete" in answer.body
    return answer.status in {200, 412}


def pause_s(tries: int) -> float:
    """Return how long to wait after so many tries."""
    return _PAUSES_S[min(tries, len(_PAUSES_S) - 1)]
