"""Writes an answer: as a table or text for people, as one JSON or YAML document for programs.

Guarantees: with `-o json` or `-o yaml` standard output holds that document and nothing else; colours are for terminals;
control characters in text from a cluster are shown and not obeyed;
lines written to a pipe are not wrapped, so that they can be searched, unless `COLUMNS` gives a width.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Annotated, Any, TextIO, cast

import typer
from typer.models import OptionInfo

from shoal.cli.completion_values import one_of
from shoal.cli.known_names import check_known
from shoal.units.errors import Where

if TYPE_CHECKING:
    from rich.console import Console

FOR_PROGRAMS = ("json", "yaml")
TABLES = ("table", "wide", *FOR_PROGRAMS)
TEXTS = ("text", *FOR_PROGRAMS)
_PIPE_WIDTH = 4000


def output_option(formats: Sequence[str], help_: str) -> OptionInfo:
    """The option -o of a command with these formats."""
    made: OptionInfo = typer.Option("-o", "--output", metavar="FORMAT", help=help_, autocompletion=one_of(formats))
    return made


TableOutput = Annotated[str, output_option(TABLES, "table, wide (more columns), json or yaml.")]
SUMMARIES = (*TABLES, "name", "jsonpath=")
SummaryOutput = Annotated[
    str, output_option(SUMMARIES, "table, wide (more columns), name, json, yaml or jsonpath=TEMPLATE.")
]
TextOutput = Annotated[str, output_option(TEXTS, "text, json or yaml.")]
AsJson = Annotated[bool, typer.Option("--json", help="The same as -o json.", hidden=True)]
"""The former spelling."""


def checked(output: str, formats: Sequence[str]) -> str:
    """One of the formats, or what is wrong with it; asked before any work."""
    check_known(output, formats, "format", Where(path="--output"))
    return output


def write(document: Any, output: str, cluster: str = "") -> None:
    """For programs. `cluster`: the name of the cluster that the document is about, as its first field."""
    import msgspec

    document = with_cluster(document, cluster)
    if output == "yaml":
        sys.stdout.write(msgspec.yaml.encode(msgspec.to_builtins(document)).decode())
        return
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n")


def with_cluster(document: Any, cluster: str) -> Any:
    """In JSON types, with the name of the cluster as its first field, if there is one."""
    import msgspec

    found = msgspec.to_builtins(document)
    return {"cluster": cluster, **found} if cluster else found


def console(*, is_folded: bool = False, has_headings: bool = True) -> Console:
    """As wide as the terminal, or as asked for. `is_folded`: text is folded at 80 columns in a pipe too."""
    from shoal.views.text_console import TextConsole

    is_terminal = sys.stdout.isatty()
    is_narrow = is_folded or is_terminal or "COLUMNS" in os.environ
    file = None if is_terminal else cast("IO[str]", _WithoutTrailingBlanks(sys.stdout))
    made = TextConsole(highlight=False, width=None if is_narrow else _PIPE_WIDTH, file=file)
    made.has_headings = has_headings
    return made


class _WithoutTrailingBlanks:
    """Standard output in a pipe: tables fill their last column with blanks, which text tools would have to remove."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(line.rstrip(" ") for line in text.split("\n")))

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
