"""Cloud Storage and the metadata server with nothing but the standard library, for a program that lives beside a worker.

It does what a VM's startup script does with curl. The official client would hold several times the memory that such a
program needs, as long as the worker runs. Part of a text that stands alone (see `source`).
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# The last one repeats.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
_CALL_S = 30.0
_TOKEN_SPARE_S = 60.0
_SHOWN_CHARACTERS = 300


class StorageSilent(Exception):
    """Cloud Storage gave no answer for as long as there is patience; the message has its last words."""


class Objects:
    """Small objects, with patience for Cloud Storage: `pauses` are the seconds between the tries of one call.

    `say` is told what does not work. STORAGE_EMULATOR_HOST and GCE_METADATA_HOST are honoured as the client does it.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        say: Callable[[str], None],
        *,
        host: str = "https://storage.googleapis.com",
        pauses: Sequence[float] = PAUSES_S,
    ) -> None:
        emulator = environ.get("STORAGE_EMULATOR_HOST", "")
        self._host, self._is_emulated = emulator or host, bool(emulator)
        self._metadata = environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
        self._say, self._pauses = say, pauses
        self._token, self._token_ends = "", 0.0
        self._storage_opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=_trust()))
        # Whatever proxy leads out of the cluster does not lead to the pod's own metadata server.
        self._metadata_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def read(self, bucket: str, name: str, patience_s: float) -> bytes | None:
        """Return the content, or None if there is no such object; StorageSilent where that cannot be learnt."""
        words = ""
        for _ in self._tries(patience_s):
            status, answer = self._call(f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media")
            if status == 200:
                return answer
            # 403 is how an absent object looks to an account that may read objects and not list them.
            if status in {403, 404}:
                return None
            words = f"gs://{bucket}/{name} is not readable: {_words(status, answer)}"
            self._say(words)
        raise StorageSilent(words)

    def create(self, bucket: str, name: str, content: bytes, content_type: str, patience_s: float) -> bool:
        """Store an object that must not exist yet; one that does is ours, from an earlier try. False: not stored."""
        query = f"uploadType=media&ifGenerationMatch=0&name={quote(name, safe='')}"
        for _ in self._tries(patience_s):
            status, answer = self._call(f"/upload/storage/v1/b/{bucket}/o?{query}", content, content_type)
            # Who may not delete may not replace: an existing object may answer 403 instead of 412.
            if status in {200, 412} or (status == 403 and b"storage.objects.delete" in answer):
                return True
            self._say(f"gs://{bucket}/{name} is not stored: {_words(status, answer)}")
            if 400 <= status < 500 and status not in {401, 408, 429}:
                return False
        return False

    def _call(self, path: str, content: bytes | None = None, content_type: str = "") -> tuple[int, bytes]:
        """Return status and body; 0 and some words where there was no answer."""
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            return self._exchange(path, content, {**headers, **self._authorization()})
        except (OSError, HTTPException, ValueError, KeyError) as fault:
            return 0, str(fault).encode()

    def _exchange(self, path: str, content: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        request = urllib.request.Request(self._host + path, content, dict(headers))  # noqa: S310 - one of two hosts
        try:
            response = self._storage_opener.open(request, timeout=_CALL_S)
        except urllib.error.HTTPError as refusal:
            response = refusal
        with response:
            if response.status == 401:
                self._token_ends = 0.0
            return response.status, response.read()

    def _authorization(self) -> Mapping[str, str]:
        """Return a token of the pod's account. It stays in memory; there may be none yet while the pod is young."""
        if self._is_emulated:
            return {}
        if time.monotonic() >= self._token_ends:
            path = "computeMetadata/v1/instance/service-accounts/default/token"
            request = urllib.request.Request(
                f"http://{self._metadata}/{path}", headers={"Metadata-Flavor": "Google"}
            )
            with self._metadata_opener.open(request, timeout=_CALL_S) as response:
                answer = json.load(response)
            self._token = answer["access_token"]
            self._token_ends = time.monotonic() + answer["expires_in"] - _TOKEN_SPARE_S
        return {"Authorization": f"Bearer {self._token}"}

    def _tries(self, patience_s: float) -> Iterator[int]:
        ends = time.monotonic() + patience_s
        number = 0
        while True:
            yield number
            pause = self._pauses[min(number, len(self._pauses) - 1)]
            if time.monotonic() + pause >= ends:
                return
            time.sleep(pause)
            number += 1


def _trust() -> ssl.SSLContext:
    context = ssl.create_default_context()
    # An image may lack the system's roots; the storage client that every worker's image holds brings its own.
    with suppress(ImportError):
        import certifi  # noqa: PLC0415 - see above

        context.load_verify_locations(certifi.where())
    return context


def _words(status: int, answer: bytes) -> str:
    words = " ".join(answer.decode("utf-8", "replace").split())[:_SHOWN_CHARACTERS]
    return f"HTTP {status}: {words}" if status else words
