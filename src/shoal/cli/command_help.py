"""Writes the help of commands: usage, purpose, arguments, options by group, examples.

Guarantees: no word is cut and no line is longer than the terminal, unless one word is; switches have no type; each
command that a user can run shows an example. Rejected: the tables of typer. At 80 columns they cut words, and their
import takes a third of the time of a command.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Any

from typer.core import TyperCommand, TyperGroup

from shoal.cli.command_examples import EXAMPLES

_LEFT = 26
"""The widest first column; longer ones have their text on the next line."""
_WIDEST, _PIPE = 100, 80
_GENERAL = "Options"


Section = tuple[str, list[tuple[str, str]]]


def read_incomplete(command: Any, ctx: Any, args: Sequence[str]) -> list[str]:
    """Reads a command line that a shell completes: texts as they are, because their conversion takes longer than the
    rest of a completion. Returns what is left for commands below.
    """
    from typer._click.core import ParameterSource

    parser = command.make_parser(ctx)
    found, rest, _ = parser.parse_args(args=list(args))
    ctx._opt_prefixes.update(parser._opt_prefixes)  # noqa: SLF001 - as the base class does
    for parameter in command.get_params(ctx):
        if parameter.expose_value and parameter.name:
            value = found.get(parameter.name)
            ctx.params[parameter.name] = value
            source = ParameterSource.COMMANDLINE if value is not None else ParameterSource.DEFAULT
            ctx.set_parameter_source(parameter.name, source)
    return list(rest)


class HelpCommand(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_of(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        ctx.args = read_incomplete(self, ctx, args)
        return list(ctx.args)


class HelpGroup(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_of(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        rest = read_incomplete(self, ctx, args)
        ctx._protected_args, ctx.args = rest[:1], rest[1:]  # noqa: SLF001 - as the base class does
        return list(ctx.args)

    def sections(self, ctx: Any) -> Iterator[Section]:
        """The commands below headings; the empty heading is for all others."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, _first(command.help or "")) for name, command in commands if command and not command.hidden]
        yield "Commands", shown


def help_of(command: Any, ctx: Any) -> str:
    """The whole help."""
    width = _width()
    lines = [f"Usage: {ctx.command_path} {' '.join(command.collect_usage_pieces(ctx))}", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        lines += [*textwrap.wrap(" ".join(paragraph.split()), width, **_WRAP), ""]
    for heading, rows in (*_commands(command, ctx), *_parameters(command, ctx)):
        if rows:
            left = min(max(len(name) for name, _ in rows), _LEFT)
            lines += [_bold(f"{heading}:"), *(line for row in rows for line in _row(*row, left, width)), ""]
    examples = EXAMPLES.get(ctx.command_path.removeprefix("shoal").strip(), ())
    if examples:
        lines += [_bold("Examples:"), *(f"  {example}" for example in examples), ""]
    return "\n".join(lines)


def _commands(command: Any, ctx: Any) -> Iterable[Section]:
    return command.sections(ctx) if isinstance(command, HelpGroup) else ()


def _parameters(command: Any, ctx: Any) -> Iterator[Section]:
    shown = [each for each in command.get_params(ctx) if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    yield "Arguments", [(each.metavar or each.name.upper(), _text(each)) for each in arguments]
    options = [each for each in shown if each.param_type_name == "option"]
    groups: dict[str, list[tuple[str, str]]] = {_GENERAL: []}
    for each in options:
        groups.setdefault(getattr(each, "rich_help_panel", None) or _GENERAL, []).append((_names(each), _text(each)))
    yield from ((name, groups[name]) for name in (*(name for name in groups if name != _GENERAL), _GENERAL)[::-1])


def _names(option: Any) -> str:
    """`-f, --filename PATH`: the short name first."""
    names = sorted(option.opts, key=lambda name: name.startswith("--"))
    text = ", ".join([*names, *option.secondary_opts])
    return text if option.is_flag or option.count else f"{text} {_value(option)}"


def _value(option: Any) -> str:
    """What is given to the option."""
    if option.metavar:
        return str(option.metavar)
    if isinstance(option.default, Enum):
        return "|".join(str(each.value) for each in type(option.default))
    return "N" if isinstance(option.default, int | float) else "TEXT"


def _text(parameter: Any) -> str:
    """The help, and the default where it is no matter of course."""
    help_ = getattr(parameter, "help", None) or ""
    default = _plain(parameter.default)
    is_said = default in (None, "", False, (), []) or callable(default) or not getattr(parameter, "show_default", True)
    if "efault" in help_ or is_said:
        return f"{help_} (required)" if parameter.required and parameter.param_type_name == "option" else help_
    if default is True:
        return f"{help_} (default: {parameter.opts[0]})" if parameter.secondary_opts else help_
    shown = ", ".join(map(str, default)) if isinstance(default, list | tuple) else default
    return f"{help_} (default: {shown})"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _row(name: str, text: str, left: int, width: int) -> Iterator[str]:
    indent = " " * (left + 4)
    lines: Sequence[str] = textwrap.wrap(" ".join(text.split()), width - len(indent), **_WRAP) or [""]
    if len(name) <= left:
        yield f"  {name:<{left}}  {lines[0]}".rstrip()
        lines = lines[1:]
    else:
        yield f"  {name}"
    yield from (f"{indent}{line}" for line in lines)


_WRAP: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def _first(text: str) -> str:
    """The first paragraph."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _width() -> int:
    is_known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return min(shutil.get_terminal_size((_PIPE, 24)).columns, _WIDEST) if is_known else _PIPE


def _bold(text: str) -> str:
    return f"\033[1m{text}\033[0m" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else text
