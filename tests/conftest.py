"""What holds for every test: no other machine, nothing of the caller's environment, repeatable examples.

Tests that need one of Google's emulators are marked so. Where it is missing they are skipped, and the summary says why;
RUNTENDER_TESTS_NO_EMULATOR=1 hides the emulators of a machine that has them.
"""

from __future__ import annotations

import gc
import ipaddress
import os
import sys
from functools import cache
from itertools import chain, cycle, groupby, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from runtender.local.emulators import EMULATORS, find_emulators
from runtender.local.errors import LocalCloudError

# An example that fails fails on every machine: examples follow from the test's source, not from chance.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")

# A developer's own plane, proxy or credentials must neither help a test nor be touched by it.
_FOREIGN_PREFIXES = ("SF_", "GOOGLE_", "GCLOUD_", "CLOUDSDK_")
_FOREIGN_NAMES = ("ALL_PROXY", "GCE_METADATA_HOST", "HTTPS_PROXY", "HTTP_PROXY", "STORAGE_EMULATOR_HOST")

_HIDE = "RUNTENDER_TESTS_NO_EMULATOR"

_TESTS = Path(__file__).parent
# Folders of tests that mostly wait for processes of their own, and of those that are long and use a core all the time.
_WAIT, _COMPUTE = frozenset({"bench", "contract", "e2e"}), frozenset({"simulation"})

_LOCAL_NAMES = frozenset({"", "localhost"})


def _forget_the_callers_environment() -> None:
    for name in list(os.environ):
        if name.startswith(_FOREIGN_PREFIXES) or name.upper() in _FOREIGN_NAMES:
            del os.environ[name]


def _is_local(host: object) -> bool:
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host is None or host in _LOCAL_NAMES:
        return True
    try:
        address = ipaddress.ip_address(str(host))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _refuse_other_hosts(event: str, args: tuple[Any, ...]) -> None:
    """Raise on a connection or a name look-up that would leave this machine.

    An audit hook sees every socket of the process, also a library's; gRPC opens its own in C and is not seen.
    No OSError: a client would take that for weather and try again.
    """
    if event == "socket.getaddrinfo":
        host: object = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    if not _is_local(host):
        raise RuntimeError(f"a test wanted to reach {host!r}; tests reach loopback addresses only")


def pytest_configure() -> None:
    _forget_the_callers_environment()
    sys.addaudithook(_refuse_other_hosts)


# After what is not asked for has been left out.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let every other test process begin with tests that wait, and the rest with such as compute, so that no core idles.

    Stealing work, as `make test` lets them, each gets an equal part of the list at first, in order; what is quick evens out
    the end.
    """
    processes: int = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes == 1:
        return
    parts: list[list[pytest.Item]] = [[] for _ in range(processes)]
    # Whole files: their tests share servers.
    files = groupby([item for item in items if _folder(item) in _WAIT], lambda item: item.path)
    for part, (_, tests) in zip(cycle(parts[::2]), files, strict=False):
        part.extend(tests)
    for part, test in zip(
        cycle(parts[1::2]), [item for item in items if _folder(item) in _COMPUTE], strict=False
    ):
        part.append(test)
    quick = iter([item for item in items if _folder(item) not in _WAIT | _COMPUTE])
    left = len(items)
    for number, part in enumerate(parts):
        size = left // (processes - number)
        part.extend(islice(quick, max(0, size - len(part))))
        left -= size
    items[:] = [*chain.from_iterable(parts), *quick]


def _folder(item: pytest.Item) -> str:
    return item.path.relative_to(_TESTS).parts[0] if item.path.is_relative_to(_TESTS) else ""


def pytest_collection_finish() -> None:
    # All of it stays until the end: no need to go through it again and again for garbage.
    gc.freeze()


@cache
def _missing(name: str) -> str:
    """Return why an emulator cannot be used here; an empty string when it can."""
    if os.environ.get(_HIDE):
        return f"Google's emulators are hidden by {_HIDE}"
    try:
        find_emulators(os.environ, [emulator for emulator in EMULATORS if emulator.name == name])
    except LocalCloudError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    # Not in a fixture: from here, the summary folds all skips for one reason into one line.
    for mark in item.iter_markers("emulator"):
        for reason in filter(None, map(_missing, mark.args)):
            pytest.skip(reason)
