"""`runtender doctor`: which plane is meant and by whose word, whether all of it works, and what somebody should see to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

import click

from runtender.cli.exits import Exit
from runtender.cli.flags import flags
from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, heading, table
from runtender.client.checkup import Finding, Level, examine
from runtender.client.configuration import Choice
from runtender.client.errors import ClientError
from runtender.client.world import World, configure, open_world
from runtender.errors import Fault, Rejected, RuntenderError


@click.command()
@with_format
def doctor(chosen: Format) -> None:
    """Show where each setting comes from, check every part of the plane, and say what to do about what is found.

    Ends with 1 if something keeps runs from starting or ending.
    """
    choices, findings = _look()
    sick = any(finding.level is Level.PROBLEM for finding in findings)
    document = {
        "healthy": not sick,
        "settings": [asdict(choice) for choice in choices],
        "findings": [asdict(finding) for finding in findings],
    }
    emit(chosen, document, lambda: _parts(choices, findings))
    if sick:
        click.get_current_context().exit(Exit.ERROR)


def _look() -> tuple[list[Choice], list[Finding]]:
    """Return the settings and all findings; what is wrong with the settings themselves is one of them."""
    given = click.get_current_context().find_root().obj
    if isinstance(given, World):
        return [], list(examine(given))
    choices: list[Choice] = []
    try:
        configuration = configure(flags())
        note(configuration.warning)
        choices = configuration.choices()
        return choices, list(examine(open_world()))
    except Rejected as rejected:
        return choices, [_faulty(fault) for fault in rejected.faults]
    except (ClientError, RuntenderError) as error:
        return choices, [Finding(check="settings", level=Level.PROBLEM, what=str(error))]


def _faulty(fault: Fault) -> Finding:
    what = f"{fault.field}: {fault.problem}" if fault.field else fault.problem
    return Finding(check="settings", level=Level.PROBLEM, what=what, remedy=fault.remedy)


def _parts(choices: Sequence[Choice], findings: Iterable[Finding]) -> Iterator[Part]:
    if choices:
        rows = [
            (each.name, each.value, each.source, each.where, ", ".join(each.overruled)) for each in choices
        ]
        yield table(("SETTING", "VALUE", "FROM", "WHERE", "OVERRULED"), rows)
        yield heading("Findings")
    yield table(
        ("CHECK", "LEVEL", "WHAT", "TO DO"),
        [(each.check, each.level, each.what, each.remedy) for each in findings],
    )
