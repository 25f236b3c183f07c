"""The messages that the README shows are ones that the plane takes in."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from runtender.wire.messages import parse_submit

README = Path(__file__).parents[3] / "README.md"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_every_message_of_the_readme_is_a_good_one() -> None:
    shown = re.findall(r"--message(?:-body)? '(\{.*?\})'", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown) >= 2
    for body in shown:
        parse_submit(body.encode(), message_id="m", published_at=NOW)


def test_the_timer_of_the_readme_asks_for_one_attempt_a_day_and_leaves_its_firings_apart() -> None:
    (body,) = re.findall(
        r"scheduler jobs create .*?--message-body '(\{.*?\})'", README.read_text(encoding="utf-8"), re.DOTALL
    )
    request = parse_submit(body.encode(), message_id="m", published_at=NOW)
    assert request.every == timedelta(days=1)
    assert "request_id" not in json.loads(body)
