"""What a task says to its container: command, arguments, environment. None of it may be a secret, only name one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from runtender.forecast.validation import FieldReader, shown, word
from runtender.redaction import holds_a_secret, is_secret_variable
from runtender.worker.secret_names import EXAMPLE, is_meant_as_reference, secret_version

# A start-up script carries the command; Compute Engine takes 256 KiB of it.
_MOST_TEXT = 64 * 1024
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_ENV = "SF_"


def check_said(reader: FieldReader, fields: Mapping[str, Any]) -> None:
    """Fault what a container cannot be told, and what nobody but the container should read."""
    env = fields.get("env", {})
    _check_env(reader, env)
    _check_words(
        reader,
        command=fields.get("command", ()),
        args=fields.get("args", ()),
        env=[str(value) for value in env.values()],
    )


def names_secrets(env: Mapping[str, str]) -> bool:
    """True when a variable has a secret's name for its value."""
    return any(map(_refers, env.values()))


def _check_env(reader: FieldReader, env: Mapping[str, Any]) -> None:
    for name, value in env.items():
        if not _ENV_NAME.fullmatch(name) or name.startswith(_OWN_ENV):
            reader.fault(
                f"env.{name}", "is not a name to use", "use letters, digits and _; SF_ is the plane's"
            )
        if is_secret_variable(name) and value and not _refers(value):
            # Whatever it is: it is not repeated here.
            problem = "is a secret by its name, and would stand in documents and on machines in plain text"
            reader.fault(f"env.{name}", problem, f"store it in Secret Manager and write {EXAMPLE}")
        elif not word().accepts(value):
            reader.fault(f"env.{name}", f"{shown(value)} is not accepted", f"it must be {word().expects}")
        elif is_meant_as_reference(value) and not _refers(value):
            reader.fault(f"env.{name}", f"{shown(value)} names no secret", f"write {EXAMPLE}")


def _refers(value: object) -> bool:
    return isinstance(value, str) and secret_version(value) is not None


def _check_words(reader: FieldReader, **said: Sequence[str]) -> None:
    """Fault more text than a machine takes, and a key or token in it, which all who may see the run would read."""
    if sum(len(one) for words in said.values() for one in words) > _MOST_TEXT:
        reader.fault("args", "command, args and env are larger than 64 KiB together", "read them from a file")
    for field_name, words in said.items():
        if any(holds_a_secret(one) for one in words):
            problem = "holds what looks like a key or token"
            reader.fault(field_name, problem, f"store it in Secret Manager, and write in env: {EXAMPLE}")
