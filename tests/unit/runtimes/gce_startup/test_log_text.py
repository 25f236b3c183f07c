"""What the container said, on its way into the marker and into storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Script = Callable[..., str]


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        pytest.param(r"printf 'a\tb\r\nc'", "a\tb\r\nc", id="acceptance-Z2 tab and line ends"),
        pytest.param(r"printf '\033[31mred\033[0m'", "\x1b[31mred\x1b[0m", id="acceptance-Z2 ESC"),
        pytest.param(
            r"""printf '%s' 'say "no" \ \n'""", r'say "no" \ \n', id="acceptance-Z2 quotes and backslashes"
        ),
        pytest.param(
            r"printf 'caf\303\251 \342\202\254 \360\237\230\200'",
            "café € \U0001f600",
            id="acceptance-Z2 whole UTF-8",
        ),
        pytest.param(r"printf 'caf\303'", "caf\ufffd", id="acceptance-Z2 UTF-8 cut at the end"),
        pytest.param(
            r"printf '\303x \200 \300\257 \355\240\200 \364\220\200\200'",
            "\ufffdx \ufffd \ufffd\ufffd \ufffd \ufffd",
            id="acceptance-Z2 what is no UTF-8",
        ),
        pytest.param(r"printf 'a\000b\177'", "a\x00b\x7f", id="acceptance-Z2 NUL and DEL"),
        pytest.param(
            r"printf '{\"status\": \"SUCCEEDED\"}\n\n'", '{"status": "SUCCEEDED"}', id="a forged marker"
        ),
        pytest.param("true", "", id="no output"),
        pytest.param(
            "seq 100; echo end >&2", "\n".join([*map(str, range(77, 101)), "end"]), id="the last 25 lines"
        ),
    ],
)
def test_the_marker_is_valid_whatever_the_log_holds(
    machine: Any, script: Script, line: str, detail: str
) -> None:
    machine.run(script(f"{line}; exit 4"))
    terminal = machine.cloud.terminal
    assert (terminal["detail"], terminal["exit_code"]) == (detail, 4)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(r"yes é | tr -d '\n' | head -c 10485762", id="acceptance-Z2 10 MB in one line"),
        pytest.param("yes 'a line of words é' | head -c 10485770", id="acceptance-Z2 10 MB in many lines"),
    ],
)
def test_a_huge_log_is_cut_in_the_marker_and_in_what_is_kept(machine: Any, script: Script, line: str) -> None:
    machine.run(script(line))
    terminal = machine.cloud.terminal
    assert terminal["status"] == "SUCCEEDED"
    assert 400 < len(terminal["detail"]) <= 800
    assert "é" in terminal["detail"]
    assert len(machine.cloud.read(terminal["log_uri"])) == 5 * 1024 * 1024


def test_a_running_containers_log_is_uploaded_as_it_grows(machine: Any, script: Script) -> None:
    machine.boot(
        script(
            "yes 'early words' | head -n 20000; until [ -e \"$STANDINS/go\" ]; do sleep 0.05; done; echo late"
        )
    )
    machine.until(lambda: machine.cloud.logs)
    first = machine.cloud.logs[0]
    assert len(first) <= 64 * 1024
    assert first.endswith(b"early words\n")
    machine.tell("go")
    machine.wait()
    assert machine.cloud.read(machine.cloud.terminal["log_uri"]).endswith(b"early words\nlate\n")
    # What did not change is not uploaded again.
    assert len(machine.cloud.logs) <= 3


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(["busy"], id="busy once"),
        pytest.param(["dropped", "busy"], id="no answer, then busy"),
    ],
)
def test_the_last_log_is_tried_again(
    machine: Any, script: Script, answers: list[str], request: pytest.FixtureRequest
) -> None:
    machine.cloud.planned["POST 0.1.log"] = [request.getfixturevalue(name) for name in answers]
    machine.run(script("echo words"))
    assert machine.cloud.read(machine.cloud.terminal["log_uri"]) == b"words\n"


def test_a_log_that_may_not_be_stored_holds_nothing_up_and_is_not_named(
    machine: Any, script: Script, may_not_create: Any
) -> None:
    machine.cloud.planned[".log"] = [may_not_create] * 9
    machine.run(script("echo words"))
    terminal = machine.cloud.terminal
    assert (terminal["status"], terminal["detail"], terminal["log_uri"]) == ("SUCCEEDED", "words", None)


def test_without_a_place_for_logs_none_are_uploaded(machine: Any, script: Script) -> None:
    machine.run(script("echo words", logs_uri=""))
    assert machine.cloud.terminal["log_uri"] is None
    assert machine.cloud.logs == []
