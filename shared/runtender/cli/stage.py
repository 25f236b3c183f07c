"""`runtender stage`: put a worker package into the code bucket, under a name made of its content."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from runtender.cli.exits import input_faults
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, facts
from runtender.cli.staging import build_package, upload_package
from runtender.cli.world import with_world
from runtender.client.world import World


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@with_format
@with_world
def stage(world: World, chosen: Format, folder: Path) -> None:
    """Zip the Python package in DIR and store it for workers.

    The name of the zip follows from its content: staging the same code again changes nothing. Give the printed package
    URI and entry point to `submit`, or to the plane as SF_PACKAGE_URI and SF_ENTRYPOINT.
    """
    with input_faults():
        package = build_package(folder)
    uri, created = upload_package(package, world.objects, world.settings.code_bucket)
    document = {
        "package_uri": str(uri),
        "entrypoint": package.entrypoint,
        "tag": package.tag,
        "files": list(package.files),
        "size_bytes": len(package.content),
        "uploaded": created,
    }

    def view() -> Iterable[Part]:
        yield facts(
            [
                ("Package", str(uri)),
                ("Entry point", package.entrypoint or ""),
                ("Files", str(len(package.files))),
                ("Size", f"{len(package.content)} bytes"),
                ("Stored", "now" if created else "before, with the same content"),
            ]
        )

    emit(chosen, document, view)
    if package.entrypoint is None:
        note(
            "no module of the package defines main(); name its entry point with --entrypoint package.module:function"
        )
