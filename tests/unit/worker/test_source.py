"""The texts that containers run behind `python -c`, on a worker that has nothing of ours."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable

import pytest

from runtender.worker.source import bootstrap_source, index_source, ray_source


@pytest.mark.parametrize(
    ("source", "needs", "longest"),
    [
        # Part of a VM's startup script.
        pytest.param(bootstrap_source, {"google"}, 8192, id="the bootstrap"),
        # One word of a command line, which holds 128 KiB, and stored with every Job.
        pytest.param(index_source, {"certifi"}, 32_768, id="an index of a Job"),
        pytest.param(ray_source, {"google", "ray"}, 8192, id="Ray"),
    ],
)
def test_a_text_stands_alone_and_is_short(source: Callable[[], str], needs: set[str], longest: int) -> None:
    text = source()
    modules = {
        name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom)
            else []
        )
    }  # fmt: skip

    assert modules - sys.stdlib_module_names == needs
    assert text.isascii()
    assert len(text) < longest


def test_an_index_runs_the_whole_bootstrap() -> None:
    words = [node.value for node in ast.walk(ast.parse(index_source())) if isinstance(node, ast.Constant)]

    assert words.count(bootstrap_source()) == 1
