"""Settings in a file: the `SF_*` variables of a plane in Google Cloud, as keys of a TOML file.

`code_bucket = "my-code"` says what SF_CODE_BUCKET says. A project has its file beside its code, a person one at home.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from runtender.errors import Fault, Rejected
from runtender.settings import Settings

PROJECT_FILE = ".runtender.toml"
USER_FILE = Path("runtender") / "config.toml"

_PREFIX = "SF_"
# Which backend there is, and how fast time passes on it, is not a property of a plane in Google Cloud.
_NOT_IN_FILES = frozenset({"SF_BACKEND", "SF_TIME_SCALE"})


def find_project_file(start: Path) -> Path | None:
    """Return the settings file of `start`, or of the nearest folder above it that has one."""
    found = (folder / PROJECT_FILE for folder in (start, *start.parents))
    return next((path for path in found if path.is_file()), None)


def find_user_file(environment: Mapping[str, str]) -> Path | None:
    """Return the settings file of whoever is logged in, below XDG_CONFIG_HOME or ~/.config."""
    home = environment.get("HOME", "")
    configs = environment.get("XDG_CONFIG_HOME", "") or (f"{home}/.config" if home else "")
    path = Path(configs) / USER_FILE
    return path if configs and path.is_file() else None


def read_settings_file(path: Path) -> dict[str, str]:
    """Return the variables that a file sets; raises `Rejected` with all its faults."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Rejected.because(str(path), f"is not readable: {error}", "write TOML, key = value") from error
    faults: list[Fault] = []
    variables = {}
    for key, value in document.items():
        try:
            variables[variable_of(key)] = _text(key, value)
        except Rejected as rejected:
            faults += rejected.faults
    if faults:
        raise Rejected(
            [Fault(field=f"{path}: {f.field}", problem=f.problem, remedy=f.remedy) for f in faults]
        )
    return variables


def variable_of(key: str) -> str:
    """Return the variable that a key of a file stands for; raises `Rejected` for a key that is none."""
    variable = f"{_PREFIX}{key.upper()}"
    if key == key.lower() and variable in file_variables():
        return variable
    keys = [name.removeprefix(_PREFIX).lower() for name in file_variables()]
    near = difflib.get_close_matches(key.lower().removeprefix(_PREFIX.lower()), keys, n=1)
    raise Rejected.because(
        key, "is not a known setting", f"did you mean {near[0]}?" if near else f"use one of {', '.join(keys)}"
    )


@cache
def file_variables() -> tuple[str, ...]:
    """Return the variables that a file may set: those that `Settings` reads, asked of itself."""
    asked = _Asked(SF_PROJECT_ID="any", SF_CODE_BUCKET="any")
    Settings.from_env(asked)
    return tuple(name for name in asked.names() if name not in _NOT_IN_FILES)


class _Asked(dict[str, str]):
    """An environment that remembers what it was asked for, so that no second list of names can fall behind."""

    def __init__(self, **variables: str) -> None:
        super().__init__(variables)
        self._names: dict[str, None] = {}

    def names(self) -> Iterator[str]:
        return iter(self._names)

    def get(self, name: str, default: Any = None) -> Any:
        self._names[name] = None
        return super().get(name, default)


def _text(key: str, value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str() | int() | float():
            return str(value)
        case _:
            raise Rejected.because(
                key, "is a list, a table or a date", "write a text, a number, true or false"
            )
