"""Progress of long work on standard error."""

from __future__ import annotations

import sys
import threading

import pytest

from build.terminal_process import TerminalProcess
from shoal.cli.progress import long_work, step, terminal_step


def test_a_step_is_a_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    step("starting")
    assert capsys.readouterr() == ("", "starting\n")


def test_work_that_lasts_says_what_it_is() -> None:
    said: list[str] = []
    spoken = threading.Event()

    def say(words: str) -> None:
        said.append(words)
        spoken.set()

    with long_work("reading the cluster", say, long_s=0):
        assert spoken.wait(60)
    assert said == ["reading the cluster ..."]


def test_work_that_is_done_at_once_says_nothing() -> None:
    said: list[str] = []
    before = threading.active_count()
    with long_work("reading the cluster", said.append, long_s=3600):
        (timer,) = (each for each in threading.enumerate() if isinstance(each, threading.Timer))
    timer.join(60)
    assert not timer.is_alive()
    assert threading.active_count() == before
    assert said == []


def test_work_on_files_says_nothing_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    terminal_step("deciding")
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_command_that_waits_for_manifests_says_that_it_reads_them() -> None:
    command = [sys.executable, "-m", "shoal", "decide", "-f", "-", "--nodes", "1xp5.48xlarge"]
    with TerminalProcess(command, (80, 24)) as terminal:
        terminal.shows("reading the manifests ...")
        terminal.type(b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n\x04")
        terminal.shows("1 placed")
        assert terminal.told() == "ended 0"
