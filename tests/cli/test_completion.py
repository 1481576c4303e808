"""`shoal completion SHELL`: scripts that ask `shoal` itself what may follow."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from shoal.cli.completion import VARIABLE, Shell
from shoal.cli.main import main


@pytest.mark.parametrize("shell", Shell)
def test_there_is_a_script_for_each_shell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert VARIABLE in script
    assert f"complete_{shell}" in script


def test_another_shell_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def completed(*words: str) -> list[str]:
    """What bash is told at the last word."""
    asked = {VARIABLE: "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-m", "shoal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **asked}, check=True)
    return done.stdout.split()


def test_commands_and_what_is_below_them_are_completed() -> None:
    assert completed("shoal", "wh") == ["why"]
    assert completed("shoal", "get", "") == ["gangs", "queues", "workloads", "nodes"]


def test_options_are_completed() -> None:
    assert {"--filename", "--output", "--kubeconfig"} <= set(completed("shoal", "top", "--"))
