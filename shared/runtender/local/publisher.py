"""The publishing side of the embedded backend: the `Topics` port over REST to the local dispatcher."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import requests

from runtender.errors import Rejected, Retryable

_TIMEOUT_S = 30.0
_FOR_EVER = frozenset({400, 401, 403, 404, 413})


class EmbeddedTopics:
    """Publishes to the dispatcher at `endpoint`. A simulation passes a `session` that answers in process."""

    def __init__(self, endpoint: str, project: str, session: requests.Session | None = None) -> None:
        self._base = f"{endpoint.rstrip('/')}/v1/projects/{project}/topics"
        self._session = session or _direct_session()

    def publish(self, topic: str, body: bytes, attributes: Mapping[str, str]) -> str:
        message = {"data": base64.b64encode(body).decode(), "attributes": dict(attributes)}
        try:
            answer = self._session.post(
                f"{self._base}/{topic}:publish", json={"messages": [message]}, timeout=_TIMEOUT_S
            )
        except requests.RequestException as error:
            raise Retryable(f"topic {topic!r}: the dispatcher did not answer: {error}") from error
        if answer.status_code in _FOR_EVER:
            raise Rejected.because("topic", f"{topic!r} was refused: {answer.text[:500]}")
        if not answer.ok:
            raise Retryable(f"topic {topic!r}: HTTP {answer.status_code}: {answer.text[:500]}")
        return str(answer.json()["messageIds"][0])


def _direct_session() -> requests.Session:
    session = requests.Session()
    # A proxy or a .netrc of the environment has no business on the loopback address.
    session.trust_env = False
    return session
