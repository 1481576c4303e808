"""What a page tells people to type exists, and what exists is on a page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.pages import PAGES, ROOT, code, console_lines, name, prose, shoal_lines
from shoal.cli.main import app, main
from shoal.engine.profile import POLICIES

SHOWN = {tuple(arguments): name(page) for page in PAGES for arguments in shoal_lines(page)}
"""Each once, and one of the pages that show it."""
CLI_PAGE = ROOT / "docs" / "cli.md"


@pytest.mark.parametrize(("arguments", "page"), SHOWN.items(), ids=lambda value: str(value))
def test_every_shoal_command_shown_is_understood(
    arguments: tuple[str, ...], page: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*arguments, "--help"])
    assert code == 0, f"{page}: {capsys.readouterr().err}"


def test_a_command_with_an_option_that_does_not_exist_would_be_noticed() -> None:
    assert main(["pack", "--polices", "FGD", "--help"]) == 2


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_make_target_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = re.findall(r"`make ([a-z0-9-]+)", prose(page)) + re.findall(r"^make ([a-z0-9-]+)", code(page), re.MULTILINE)
    assert [target for target in shown if target not in targets] == []


def test_the_test_command_of_the_readme_is_the_one_that_ci_runs() -> None:
    assert re.search(r"\bmake test\b", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def _options(command: Any, path: str) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        for option in parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]:
            yield path, option
    for inner, deeper in getattr(command, "commands", {}).items():
        yield from _options(deeper, f"{path} {inner}")


@pytest.mark.parametrize(("command", "option"), [*_options(typer.main.get_command(app), "shoal")])
def test_every_option_is_on_the_page_of_the_command_line(command: str, option: str) -> None:
    page = CLI_PAGE.read_text(encoding="utf-8")
    assert command == "shoal bench" or f"## {command}\n" in page or command == "shoal"
    assert f"`{option}" in page


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_on_the_pages_that_list_them(policy: str) -> None:
    assert f"`{policy}`" in prose(CLI_PAGE)
    assert f"**{policy}**" in prose(ROOT / "docs" / "packing.md")


def test_the_example_prints_what_the_page_shows() -> None:
    done = subprocess.run(
        [sys.executable, "examples/decide.py"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    page = ROOT / "docs" / "architecture.md"
    line = next(line for line in console_lines(page) if "decide.py" in line)
    assert shlex.split(line) == ["python", "examples/decide.py"]
    assert f"$ {line}\n{done.stdout}```" in page.read_text(encoding="utf-8")
