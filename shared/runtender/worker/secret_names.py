"""How a run names a secret: `secret://projects/P/secrets/S/versions/V`, in place of the value, which only its worker reads."""

from __future__ import annotations

import re

SCHEME = "secret://"
EXAMPLE = f"{SCHEME}projects/PROJECT/secrets/NAME/versions/latest"

_REFERENCE = re.compile(
    SCHEME + r"(projects/[a-z0-9.:-]+/secrets/[A-Za-z0-9_-]{1,255}/versions/[A-Za-z0-9_-]{1,63})"
)


def is_meant_as_reference(text: str) -> bool:
    """True for what begins like a reference, whether it is a proper one or not."""
    return text.startswith(SCHEME)


def secret_version(text: str) -> str | None:
    """Return the resource name of the version that a reference means; None for what is no reference."""
    match = _REFERENCE.fullmatch(text)
    return match[1] if match else None
