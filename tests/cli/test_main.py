"""The `shoal` command from outside."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from shoal.cli.main import main


def test_without_a_command_it_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("pack", "demo", "bench"))


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", [[], ["pack"], ["demo"], ["bench"], ["bench", "engine"]])
def test_every_command_explains_itself(command: list[str], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, option]) == 0
    assert "Usage: shoal" in capsys.readouterr().out


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shoal ")


WRONG_USAGE = {
    "an unknown command": (["fly"], "No such command 'fly'; see shoal --help"),
    "an unknown option": (["pack", "--colour"], "No such option: --colour"),
    "a word for a number": (["pack", "--load", "much"], "Invalid value for '--load'"),
    "a negative seed": (["pack", "--seed", "-1"], "Invalid value for '--seed'"),
    "a bench without a name": (["bench"], "Missing command; see shoal bench --help"),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG_USAGE.values(), ids=WRONG_USAGE.keys())
def test_wrong_usage_is_one_line_and_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert err.count("\n") == 1


def test_debug_is_understood_at_the_end_of_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", "--policy", "nonsense", "--debug"]) == 2
    assert capsys.readouterr().err.startswith("Traceback")


def test_a_reader_that_went_away_is_no_news() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "shoal", "--version"], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert done.returncode == 1
    assert done.stderr == b""


def test_help_loads_no_engine() -> None:
    script = "import sys; from shoal.cli.main import main; main(['--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")


def test_a_terminal_without_the_letters_still_shows_the_result() -> None:
    command = [sys.executable, "-m", "shoal", "pack", "--help"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == 0
