"""A group whose commands are imported when they are needed, so that help and completion import nothing else."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer

from shoal.cli.command_help import HelpCommand, HelpGroup, Section

_ALIKE = 0.65


class CommandEntry(NamedTuple):
    name: str
    target: str
    """`module:function`, or `module:app` for a group."""
    heading: str
    """In the help."""
    summary: str
    """The first line of the command's help."""


class LazyCommands(Mapping[str, Any]):
    def __init__(self, entries: Mapping[str, CommandEntry]) -> None:
        self._entries = entries
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _command(self._entries[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class LazyGroup(HelpGroup):
    """`entries` is what a subclass sets."""

    entries: tuple[CommandEntry, ...] = ()
    general: tuple[tuple[str, str], ...] = ()
    """Options that are read before the command line is parsed, with their help. Options of the group itself would make
    typer load its converters for every command.
    """
    instead: Mapping[str, str] = {}
    """Words of other programs, and what to use."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self._by_name = {each.name: each for each in self.entries}
        self._is_listing = False
        self.commands: Any = LazyCommands(self._by_name)

    def list_commands(self, _: Any) -> list[str]:
        return list(self._by_name)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Where only names and summaries are wanted, a stand-in."""
        entry = self._by_name.get(cmd_name)
        if entry is None or not self._is_listing:
            return super().get_command(ctx, cmd_name)
        return HelpCommand(cmd_name, help=entry.summary)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        self._is_listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._is_listing = False

    def sections(self, _: Any) -> Iterator[Section]:
        for heading in dict.fromkeys(each.heading for each in self.entries):
            yield heading, [(each.name, each.summary) for each in self.entries if each.heading == heading]
        yield "Options everywhere", list(self.general)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self._by_name and not args[0].startswith("-"):
            near = self.instead.get(args[0]) or next(
                iter(difflib.get_close_matches(args[0], self._by_name, 1, _ALIKE)), ""
            )
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near!r}?" if near else ""))
        return super().resolve_command(ctx, args)


def _command(entry: CommandEntry) -> Any:
    module, _, name = entry.target.partition(":")
    target = getattr(import_module(module), name)
    if isinstance(target, typer.Typer):
        found: Any = typer.main.get_command(target)
    else:
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        single.command(entry.name, cls=HelpCommand)(target)
        found = typer.main.get_command(single)
    found.name = entry.name
    return found
