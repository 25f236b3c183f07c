"""Real time and real chance, behind the Clock port."""

from __future__ import annotations

import random
import secrets
import time
from datetime import UTC, datetime

# Not the one that whole programs share: whoever seeds that wants the same draws each time.
_CHANCE = random.SystemRandom()


class SystemClock:
    """The clock of every deployed function and of the command line."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def token(self) -> str:
        # 64 bits: two writers of one document never draw the same.
        return secrets.token_hex(8)

    def jitter(self) -> float:
        return _CHANCE.random()
