"""Failures at the door: one line, the right code, the traceback only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import pytest
import typer

from shoal.cli.exit_codes import exit_code
from shoal.units.errors import ConflictError, UserError, Where


def failing(error: BaseException) -> Callable[[], NoReturn]:
    def command() -> NoReturn:
        raise error

    return command


FAILURES = {
    "wrong input": (UserError("is negative", where=Where("p.csv", row=3)), 2, "shoal: p.csv: row 3: is negative\n"),
    "wrong usage": (
        typer.BadParameter("no such colour"),
        2,
        "shoal: Invalid value: no such colour; see shoal --help\n",
    ),
    "a conflict nobody retried": (
        ConflictError("changed"),
        1,
        "shoal: ConflictError: changed (add --debug to see where)\n",
    ),
    "a bug": (ZeroDivisionError("a\nb"), 1, "shoal: ZeroDivisionError: a b (add --debug to see where)\n"),
    "a full disk": (OSError(28, "No space left on device"), 1, "shoal: OSError: [Errno 28] No space left on device"),
    "Ctrl-C": (KeyboardInterrupt(), 130, "shoal: interrupted\n"),
    "Ctrl-C as typer passes it on": (typer.Abort(), 130, "shoal: interrupted\n"),
}


@pytest.mark.parametrize(("error", "code", "line"), FAILURES.values(), ids=FAILURES.keys())
def test_one_line_and_the_code_for(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(failing(error)) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_debug_shows_where_it_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(failing(ZeroDivisionError("x")), debug=True) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("shoal: ZeroDivisionError: x\n")


def test_a_command_that_returns_nothing_is_done() -> None:
    assert exit_code(lambda: None) == 0


def test_a_command_may_choose_its_code() -> None:
    assert exit_code(lambda: 3) == 3
