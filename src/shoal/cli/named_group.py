"""A group of commands that is one itself and takes a name: `shoal queue NAME`, beside `shoal queue diff`.

The first word that is neither an option nor a command is the name, and is handed on as the option `--name`. An object
with the name of a command is requested by that option.

Rejected: an argument of the group. It would take the name of the command for itself.
"""

from __future__ import annotations

from typing import Any

from shoal.cli.command_help import HelpGroup

_NAME = "--name"


class NamedGroup(HelpGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = self._first_word(args)
        if at is not None and args[at] not in self.commands:
            args = [_NAME, args[at], *args[:at], *args[at + 1 :]]
        return super().parse_args(ctx, args)

    def _first_word(self, args: list[str]) -> int | None:
        """Its position; values of options do not count."""
        with_values = {
            name
            for each in self.params
            if not getattr(each, "is_flag", False)
            for name in (*each.opts, *each.secondary_opts)
        }
        at = 0
        while at < len(args):
            if args[at] in with_values:
                at += 2
            elif args[at].startswith("-") and args[at] != "-":
                at += 1
            else:
                return at
        return None
