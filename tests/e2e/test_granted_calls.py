"""The whole local cloud makes no call of Google's APIs that the table of permissions does not know."""

from __future__ import annotations

from typing import Any

import pytest

from runtender.model import Phase
from runtender.permissions.needs import NEEDS

pytestmark = pytest.mark.e2e


def test_a_run_makes_no_call_that_nobody_is_granted(caller: Any) -> None:
    caller.await_phase(caller.task("true"), Phase.DONE)
    assert caller.cloud.calls().keys() - {call.method for call in NEEDS} == set()
