"""A command can take its options as one dataclass."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer.testing import CliRunner

import shoal.cli
from shoal.cli.option_groups import with_options


@dataclass(frozen=True, kw_only=True)
class Options:
    size: Annotated[int, typer.Option(min=1, help="How many.")]
    loud: Annotated[bool, typer.Option("--loud")] = False


@with_options
def command(context: typer.Context, options: Options, name: str = "x") -> None:
    """Does something."""
    typer.echo(f"{context.info_name} {options.size} {options.loud} {name}")


app = typer.Typer()
app.command()(command)


def test_the_fields_of_a_dataclass_are_options_of_the_command() -> None:
    done = CliRunner().invoke(app, ["--size", "3", "--loud", "--name", "y"])
    assert done.output == "command 3 True y\n"


def test_a_field_without_a_default_is_required_and_its_limits_hold() -> None:
    missing = CliRunner().invoke(app, [])
    small = CliRunner().invoke(app, ["--size", "0"])
    assert [missing.exit_code, small.exit_code] == [2, 2]
    assert "--size" in missing.output
    assert "is not in the range x>=1" in small.output


def test_the_help_is_that_of_the_command() -> None:
    words = CliRunner().invoke(app, ["--help"]).output
    assert "Does something." in words
    assert "How many." in words


def test_no_function_of_the_command_line_has_more_than_six_parameters() -> None:
    folder = Path(shoal.cli.__file__).parent
    functions = [
        (f"{file.name}: {node.name}", [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        for file in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(functions) > 100
    assert [name for name, given in functions if len([each for each in given if each.arg != "self"]) > 6] == []
