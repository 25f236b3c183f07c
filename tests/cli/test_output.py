"""How anything is printed: three formats, no control characters in a pipe, no colour where none is wanted."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from io import StringIO

import pytest
import yaml

from runtender.cli.drawing import render
from runtender.cli.output import Format, emit
from runtender.cli.parts import facts, table
from runtender.cli.text import moment, one_line, plain, span
from runtender.model import Phase

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_NASTY = "a\x1b[31mred\x1b[0m\x07\x7f\x85\u2028b"


class Terminal(StringIO):
    def isatty(self):
        return True


_SPANS = {
    None: "-",
    0: "0s",
    59.4: "59s",
    59.6: "1m00s",
    245: "4m05s",
    3600: "1h00m",
    90_000: "25h00m",
    -5: "-5s",
    timedelta(minutes=2): "2m00s",
}


@pytest.mark.parametrize(("length", "words"), _SPANS.items(), ids=map(str, _SPANS))
def test_spans_are_short_and_exact_enough(length, words):
    assert span(length) == words


def test_moments_are_in_utc():
    assert moment(datetime(2026, 1, 5, 9, 0, tzinfo=timezone(timedelta(hours=1)))) == "2026-01-05 08:00:00Z"


def test_plain_text_keeps_lines_and_tabs_only():
    assert plain("a\tb\r\nc\rd\x1b]0;t\x07e\x1b[1;31mf\x00") == "a\tb\nc\ndef"
    assert one_line(" a\n\tb ") == "a b"


@pytest.mark.parametrize("chosen", list(Format))
def test_piped_output_holds_no_control_character(capsys, chosen):
    emit(chosen, {"text": _NASTY}, lambda: [table(["TEXT"], [[_NASTY]]), facts([("Text", _NASTY)])])

    assert _CONTROL.findall(capsys.readouterr().out) == []


def test_both_documents_say_the_same(capsys):
    document = {
        "at": datetime(2026, 1, 5, 8, 0, 0, 5, tzinfo=UTC),
        "phase": Phase.RUNNING,
        "rows": ({"n": 1.5, "none": None},),
        "text": _NASTY,
    }
    emit(Format.JSON, document, list)
    as_json = json.loads(capsys.readouterr().out)
    emit(Format.YAML, document, list)
    as_yaml = yaml.safe_load(capsys.readouterr().out)

    assert (
        as_json
        == as_yaml
        == {
            "at": "2026-01-05T08:00:00.000005Z",
            "phase": "RUNNING",
            "rows": [{"n": 1.5, "none": None}],
            "text": _NASTY,
        }
    )


def test_a_piped_row_never_wraps_and_never_ends_in_blanks():
    long = "x" * 500
    lines = render(table(["A", "B"], [[long, "1"], ["y", "2"]], numbers=["B"]), StringIO()).splitlines()

    assert [line.split() for line in lines] == [["A", "B"], [long, "1"], ["y", "2"]]
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_terminal_too_narrow_for_a_table_never_cuts_a_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    words = ["sf-flights-0123456789ab-statistical-a1", "2026-01-05 08:00:00Z", "some words about it " * 5]
    first, *others = render(table(["NAME", "AT", "MESSAGE"], [words]), Terminal()).splitlines()[1:]

    assert first.startswith("  ".join(words[:2]))
    assert {len(line) - len(line.lstrip()) for line in others} == {len(words[0]) + len(words[1]) + 4}


def test_what_looks_like_markup_is_printed_as_it_is():
    assert "[red]x[/red] :smile:" in render(table(["A"], [["[red]x[/red] :smile:"]]), StringIO())


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)], ids=["wanted", "not wanted"])
def test_a_terminal_has_styles_unless_no_color_is_set(monkeypatch, no_color, coloured):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)

    assert ("\x1b[" in render(table(["A"], [["x"]]), Terminal())) is coloured


def test_a_pipe_has_no_styles_even_where_they_are_forced(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")

    assert "\x1b" not in render(table(["A"], [["x"]]), StringIO())


@pytest.mark.parametrize(
    "verb", [["list"], ["describe", "flights-0123456789ab"], ["wait", "flights-0123456789ab"]]
)
@pytest.mark.parametrize("form", [each.value for each in Format])
def test_every_table_and_document_is_clean_when_piped(runtender, make, keep, verb, form):
    job = make.ended_job("FAILED", detail=_NASTY)
    keep(make.run(job, labels={"team": _NASTY}), job)
    result = runtender(*verb, "--format", form)

    assert _CONTROL.findall(result.stdout) == []
    assert _CONTROL.findall(result.stderr) == []
