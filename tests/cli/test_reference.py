"""The reference page says what the commands say."""

from __future__ import annotations

from runtender.cli.reference import PAGE, page


def test_the_page_is_what_the_code_makes():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make reference`"
