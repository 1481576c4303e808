"""The help of every command: examples that work, no cut words, no types behind switches; and what completion reads."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from build.completed import offered
from shoal.cli.command_examples import EXAMPLES
from shoal.cli.commands import Commands
from shoal.cli.main import app, main


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))


PATHS = [*_paths(typer.main.get_command(app))]


def help_of(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    assert main([*path, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_fits_80_columns_and_ends_with_examples(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(path, capsys)
    purpose, examples = text.split("Examples:\n")
    assert [line for line in purpose.splitlines() if len(line) > 80] == []
    assert "…" not in purpose
    assert re.search("<bool>|<=x<=|INTEGER|\\\\\\[", purpose) is None
    assert examples.strip()
    assert "Usage: shoal" in text


@pytest.mark.parametrize("width", ["40", "100"])
def test_help_follows_the_width_of_the_terminal(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    purpose = help_of(("down",), capsys).partition("Examples:")[0]
    assert max(map(len, purpose.splitlines())) <= int(width)


EXAMPLE_LINES = [line for lines in EXAMPLES.values() for line in lines if "shoal " in line]


@pytest.mark.parametrize("line", EXAMPLE_LINES)
def test_every_example_is_a_command_that_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"shoal (.+?)(?:\s+#.*|\)\"|\s+\|.*)?$", line.replace('"      #', '" #'))
    assert found is not None
    words = shlex.split(found[1].partition(")")[0], comments=True)
    assert main([*words, "--help"]) == 0, capsys.readouterr().err


def test_every_command_has_examples_and_no_others_have() -> None:
    assert {" ".join(path) for path in PATHS} == set(EXAMPLES)


@pytest.mark.parametrize("entry", Commands.entries, ids=lambda entry: entry.name)
def test_the_summary_in_the_list_is_the_first_paragraph_of_the_help(entry: Any) -> None:
    command = typer.main.get_command(app).commands[entry.name]  # type: ignore[attr-defined]
    assert " ".join((command.help or "").split("\n\n")[0].split()).startswith(entry.summary.rstrip("."))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("vresion", "version"), ("gte", "get"), ("describe", "why"), ("nodes", "get nodes"), ("stop", "down")],
)
def test_a_mistyped_command_is_answered_with_the_one_that_is_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed]) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_help_and_completion_import_no_command_and_no_library_for_conversions() -> None:
    unwanted = ("pydantic", "rich", "yaml", "numpy", "asyncio", "shoal.cli.up")
    script = (
        "import sys; from shoal.cli.main import main; main(['--help']); "
        f"print([each for each in {unwanted} if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_options_are_completed_behind_arguments_and_other_options() -> None:
    assert offered("why", "pod/x", "--kubeconfig", "y", at="--name") == ["--namespace"]
    assert offered("cluster", at="gpu") == ["gpu-fail"]
    assert offered("queue", at="di") == ["diff"]
