"""What a secret looks like, so that none is written into a log, a document or an answer, or taken as a task's plain text.

A secret belongs into Secret Manager; a run names it (`worker.secrets`), and only the worker ever reads it. What is here is the
second line: it recognises what should not have come this far.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from runtender.worker.secret_names import is_meant_as_reference

REDACTED = "[redacted]"

TOKENS = (
    r"[Bb][Ee][Aa][Rr][Ee][Rr] +[A-Za-z0-9._~+/=-]+",
    r"ya29\.[A-Za-z0-9_-]+",
    r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
    r"AIza[A-Za-z0-9_-]{35}",
    r"GOCSPX-[A-Za-z0-9_-]+",
    r"X-Goog-Signature=[A-Za-z0-9]+",
    r"A[KS]IA[A-Z0-9]{16}",
    r"gh[opsu]_[A-Za-z0-9]{20,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
)
"""Texts that are secret by their shape alone: access and identity tokens, API keys, signatures of URLs, private keys.

Each means the same to Python and to `sed -E`, because workers redact what they tell as well.
"""

_TOKEN = re.compile("|".join(TOKENS), re.DOTALL)
_FIELDS = ("authorization", "cookie", "credential", "password", "secret", "access_token", "api_key")
_VARIABLE = re.compile(
    r"(.*_)?(PASSWORD|PASSWD|SECRET|TOKEN|CREDENTIALS?|APIKEY|(API|ACCESS|PRIVATE|SECRET)_KEY)", re.IGNORECASE
)


def redacted(text: str) -> str:
    """Return a text without the tokens and keys in it."""
    return _TOKEN.sub(REDACTED, text)


def without_secrets(document: Any) -> Any:
    """Return a JSON value without the tokens in its texts, and without what stands under a secret's name.

    What names a secret instead of saying it stays.
    """
    match document:
        case str():
            return redacted(document)
        case list():
            return [without_secrets(item) for item in document]
        case dict():
            return {key: _without_secret(key, value) for key, value in document.items()}
        case _:
            return document


def _without_secret(key: str, value: Any) -> Any:
    if isinstance(value, str) and value and is_secret_variable(key) and not is_meant_as_reference(value):
        return REDACTED
    return without_secrets(value)


def holds_a_secret(text: str) -> bool:
    """True when a part of the text is secret by its shape."""
    return _TOKEN.search(text) is not None


def is_secret_field(name: str) -> bool:
    """True for a field of a log line or document whose name says that its value is nobody's business."""
    return any(word in name.lower() for word in _FIELDS)


def is_secret_variable(name: str) -> bool:
    """True for an environment variable whose name ends in what secrets are called: DB_PASSWORD, but not TOKEN_LIMIT."""
    return _VARIABLE.fullmatch(name) is not None


def sed_commands() -> Iterator[str]:
    """Return the commands by which `sed -E` does, within each line, what `redacted` does."""
    return (f"s|{token}|{REDACTED}|g" for token in TOKENS)
