"""Commands that are loaded when they are named, so that each pays for its own imports and for no other's."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group that knows of commands where they are: by name, `module:attribute`.

    What tells about all of them (help, completion of names, the reference) loads them all.
    """

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, those that are not loaded included."""
        return sorted({*super().list_commands(ctx), *self._places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loaded on first use; None for one that there is not."""
        if cmd_name in self._places and cmd_name not in self.commands:
            module, _, attribute = self._places[cmd_name].partition(":")
            self.add_command(getattr(import_module(module), attribute))
        return super().get_command(ctx, cmd_name)
