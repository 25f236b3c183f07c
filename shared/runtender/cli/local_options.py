"""What `runtender local up` and `runtender local demo` have in common: their options, and the extra that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from runtender.cli.exits import Failure

time_scale_option = click.option(
    "--time-scale",
    type=click.FloatRange(min=0, min_open=True),
    help="How many times faster than Google Cloud the local one is.",
)
scenario_option = click.option(
    "--scenario", metavar="NAME", help="A scenario: a shipped one by name, or a YAML file."
)
backend_option = click.option(
    "--backend",
    type=click.Choice(["embedded", "google"]),
    default="embedded",
    show_default=True,
    help="Where documents and messages are: in our own store and topics, or in Google's Firestore and Pub/Sub emulators.",
)


@contextmanager
def local_extra() -> Iterator[None]:
    """Say which extra is missing when an import fails for want of it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("runtender"):
            raise
        raise Failure(f"the local cloud needs {error.name}; install runtender[local]") from error
