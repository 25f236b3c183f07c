"""How the steps of several jobs are taken: side by side, since each mostly waits for answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

_STEPS_AT_ONCE = 8

Spread = Callable[[Callable[[str], bool], Sequence[str]], Iterable[bool]]
"""Carries out one step per key and returns their results."""


def side_by_side(step: Callable[[str], bool], keys: Sequence[str]) -> Iterable[bool]:
    """Take several steps at once, in threads. Each knows what its caller said about the event, for its log."""
    contexts = [copy_context() for _ in keys]
    with ThreadPoolExecutor(max_workers=min(_STEPS_AT_ONCE, len(keys))) as pool:
        return list(pool.map(lambda context, key: context.run(step, key), contexts, keys))
