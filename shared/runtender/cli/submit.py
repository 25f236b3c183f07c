"""`runtender submit`: check a run config on this machine, publish it, and say what the plane made of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.console import RenderableType

from runtender.cli.config_file import read_config
from runtender.cli.exits import input_faults
from runtender.cli.output import Format, emit, facts, note, with_format
from runtender.cli.parameters import duration, labels, names
from runtender.cli.requests import answer, refusal
from runtender.cli.submission import Wishes, submit_config
from runtender.cli.wait import wait_for
from runtender.cli.world import World, with_world
from runtender.model import SubmitKind
from runtender.wire.documents import run_path

_DUPLICATE, _PUBLISHED = "duplicate", "published"


@click.command()
@click.argument("config", metavar="CONFIG")
@click.option(
    "--wait", "waits", is_flag=True, help="Stay until the run has ended, and end with its exit code."
)
@click.option("--no-confirm", is_flag=True, help="Publish and leave; do not wait for the plane's answer.")
@click.option("--force", is_flag=True, help="Start a new attempt although this config has run before.")
@click.option(
    "--run-limit", metavar="SPAN", callback=duration, help="How long each family may run, e.g. 90m."
)
@click.option(
    "--capacity-wait", metavar="SPAN", callback=duration, help="How long to look for capacity, e.g. 45m."
)
@click.option(
    "--label", "labels", metavar="KEY=VALUE", multiple=True, callback=labels, help="A label; repeatable."
)
@click.option("--models", metavar="A,B", callback=names, help="Only these models of the config.")
@click.option("--families", metavar="A,B", callback=names, help="Only these model families.")
@click.option("--image", help="Container image of the workers.")
@click.option("--package-uri", metavar="URI", help="Code of the workers, as printed by 'runtender stage'.")
@click.option("--entrypoint", metavar="NAME", help="Where the code begins: package.module:function.")
@click.option("--request-id", metavar="ID", help="Your own id of this request; repeated, it changes nothing.")
@click.option(
    "--kind",
    type=click.Choice([each.value for each in SubmitKind]),
    default=SubmitKind.FORECAST.value,
    show_default=True,
    help="What CONFIG describes: a forecast, or one plain container.",
)
@with_format
@with_world
def submit(
    world: World,
    chosen: Format,
    /,
    config: str,
    *,
    waits: bool,
    no_confirm: bool,
    request_id: str | None,
    kind: str,
    **wishes: Any,
) -> None:
    """Publish the run that CONFIG describes: a JSON or YAML file, '-' for standard input, or a gs:// URI.

    Config and panel are checked first; nothing is published while a fault is left.
    """
    if waits and no_confirm:
        raise click.UsageError("--wait needs the plane's answer; leave out --no-confirm")
    request_id = request_id or str(uuid.uuid4())
    with input_faults():
        content = read_config(config, world.objects)
        note(submit_config(world, content, request_id, Wishes(kind=SubmitKind(kind), **wishes)))
    if no_confirm:
        _report(chosen, _document(request_id, _PUBLISHED))
        return
    document = _confirmed(world, request_id)
    if refused := refusal(document):
        _report(chosen, document)
        raise refused
    if document["state"] == _DUPLICATE:
        note(f"run {document['run_id']} has this config already; --force starts a new attempt")
    if waits:
        note(f"run {document['run_id']} is {document['state']}")
        wait_for(world, chosen, document["run_id"])
    _report(chosen, document)


def _confirmed(world: World, request_id: str) -> dict[str, Any]:
    """Return the plane's answer with the run's job keys; raises `Failure` when there is none in time."""
    row = answer(world, request_id)
    run_id = row.get("run_id")
    header = world.store.get(run_path(run_id)) if run_id else None
    families = header.data["families"] if header else {}
    return {
        **_document(request_id, row["state"]),
        "run_id": run_id,
        "jobs": {family: entry["job_key"] for family, entry in families.items()},
        "errors": list(row["errors"]),
    }


def _document(request_id: str, state: str) -> dict[str, Any]:
    return {"request_id": request_id, "state": state, "run_id": None, "jobs": {}, "errors": []}


def _report(chosen: Format, document: Mapping[str, Any]) -> None:
    def view() -> Iterable[RenderableType]:
        yield facts(
            [
                ("Run", document["run_id"] or ""),
                ("State", document["state"]),
                *(("Job", key) for key in document["jobs"].values()),
                ("Request", document["request_id"]),
            ]
        )

    emit(chosen, document, view)
