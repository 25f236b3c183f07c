"""Cloud Storage as a worker uses it: read a whole object, write one once.

The official client, which honours STORAGE_EMULATOR_HOST and then asks for no credentials.
"""

from __future__ import annotations

from collections.abc import Mapping

from google.api_core.exceptions import Forbidden, NotFound, PreconditionFailed
from google.cloud.storage import Blob, Client  # type: ignore[import-untyped]

# Read and connect, seconds, of one try; the client repeats failed ones for two minutes by itself.
_TIMEOUT_S = 60


class ObjectMissing(LookupError):
    """There is no such object, or no such bucket."""


class Objects:
    """Objects by their `gs://bucket/name`; every method raises ValueError for anything else."""

    def __init__(self, project: str | None = None) -> None:
        self._client = Client(project=project)

    def read(self, uri: str) -> bytes:
        """Return the whole content; ObjectMissing if there is none."""
        try:
            content: bytes = self._blob(uri).download_as_bytes(timeout=_TIMEOUT_S)
        except NotFound as error:
            raise ObjectMissing(f"{uri} does not exist") from error
        return content

    def write_once(
        self, uri: str, content: bytes, content_type: str, metadata: Mapping[str, str] | None = None
    ) -> None:
        """Store an object under a name that is used once.

        An object that is there already is our own: the path holds our nonce, and either the answer to an
        earlier try was lost or the worker was started twice. Both left the same results: it counts as stored.
        """
        blob = self._blob(uri)
        blob.metadata = dict(metadata or {})
        try:
            blob.upload_from_string(
                content, content_type=content_type, if_generation_match=0, timeout=_TIMEOUT_S
            )
        except PreconditionFailed:
            return
        except Forbidden as error:
            # Who may not delete may not replace: an existing object may answer 403 instead of 412.
            if "storage.objects.delete" not in str(error):
                raise

    def _blob(self, uri: str) -> Blob:
        bucket, _, name = uri.removeprefix("gs://").partition("/")
        if not uri.startswith("gs://") or not bucket or not name:
            raise ValueError(f"{uri!r} is not gs://BUCKET/NAME")
        return self._client.bucket(bucket).blob(name)
