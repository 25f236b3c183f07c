"""`runtender dead-letters`: the messages that the plane gave up on, to be looked at, sent again or thrown away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click

from runtender.cli.output import Format, emit, note, with_format
from runtender.cli.parts import Part, facts, table
from runtender.cli.text import moment, plain
from runtender.cli.world import with_world
from runtender.client.dead_letters import DeadLetter, DeadLetterBox
from runtender.client.world import World


def _chosen_letters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the letters to work on: ids, or all."""
    everything = click.option("--all", "everything", is_flag=True, help="All that wait.")
    return click.argument("ids", metavar="[ID]...", nargs=-1)(everything(command))


@click.group("dead-letters")
def dead_letters() -> None:
    """Look at messages that the plane gave up on, send them again, or throw them away."""


@dead_letters.command("list")
@with_format
@with_world
def list_letters(world: World, chosen: Format) -> None:
    """List the dead letters, oldest first. They stay where they are."""
    with DeadLetterBox(world) as box:
        letters = box.letters
    emit(chosen, {"dead_letters": [_document(letter) for letter in letters]}, lambda: _list_parts(letters))
    if not letters:
        note("no dead letters")


@dead_letters.command()
@click.argument("letter_id", metavar="ID")
@with_format
@with_world
def show(world: World, chosen: Format, letter_id: str) -> None:
    """Show the dead letter ID with its attributes and all that was in it. It stays where it is."""
    with DeadLetterBox(world) as box:
        (letter,) = box.find([letter_id])
    document = {**_document(letter), "body": letter.held.body.decode("utf-8", "replace")}
    emit(chosen, document, lambda: _letter_parts(letter))


@dead_letters.command()
@_chosen_letters
@with_format
@with_world
def redrive(world: World, chosen: Format, ids: tuple[str, ...], everything: bool) -> None:
    """Send dead letters to the topic that they came from once more, and take them away here.

    A request that was rejected goes out under a new id: its old one has its answer for good.
    """
    with DeadLetterBox(world) as box:
        sent = [box.redrive(letter) for letter in _wanted(box, ids, everything)]
    rows = [(each.id, each.topic, each.message_id, each.request_id or "") for each in sent]
    emit(
        chosen,
        {"redriven": [asdict(each) for each in sent]},
        lambda: [table(("ID", "TOPIC", "MESSAGE", "REQUEST"), rows)],
    )


@dead_letters.command()
@_chosen_letters
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_format
@with_world
def discard(world: World, chosen: Format, ids: tuple[str, ...], everything: bool, yes: bool) -> None:
    """Throw dead letters away for good."""
    with DeadLetterBox(world) as box:
        letters = _wanted(box, ids, everything)
        if letters and not yes:
            click.confirm(f"Throw away {len(letters)} of {len(box.letters)} for good?", abort=True, err=True)
        if letters:
            box.discard(letters)
    gone = [letter.id for letter in letters]
    emit(chosen, {"discarded": gone}, lambda: [table(("DISCARDED",), [(each,) for each in gone])])


def _wanted(box: DeadLetterBox, ids: Sequence[str], everything: bool) -> Sequence[DeadLetter]:
    if everything == bool(ids):
        raise click.UsageError("name the dead letters, or all of them by --all")
    return box.letters if everything else box.find(ids)


def _document(letter: DeadLetter) -> dict[str, Any]:
    return {
        "id": letter.id,
        "published_at": letter.held.published_at,
        "topic": letter.topic,
        "request_id": letter.request_id,
        "reason": letter.reason,
        "attributes": dict(letter.held.attributes),
        "size_bytes": len(letter.held.body),
    }


def _list_parts(letters: Iterable[DeadLetter]) -> Iterable[Part]:
    rows = [
        (
            letter.id,
            moment(letter.held.published_at),
            letter.topic or "",
            str(len(letter.held.body)),
            letter.request_id or "",
            letter.reason,
        )
        for letter in letters
    ]
    yield table(("ID", "PUBLISHED", "TOPIC", "BYTES", "REQUEST", "REASON"), rows, numbers=["BYTES"])


def _letter_parts(letter: DeadLetter) -> Iterable[Part]:
    yield facts(
        [
            ("ID", letter.id),
            ("Published", moment(letter.held.published_at)),
            ("Topic", letter.topic or "none of this plane"),
            ("Request", letter.request_id or ""),
            ("Reason", letter.reason),
            *((f"  {name}", value) for name, value in sorted(letter.held.attributes.items())),
        ]
    )
    yield f"\n{plain(_readable(letter.held.body))}"


def _readable(body: bytes) -> str:
    try:
        return json.dumps(json.loads(body), indent=2)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
