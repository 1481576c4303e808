"""`--log-format` and `--log-level` of commands that run until they are ended."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from shoal.cli.main import main
from shoal.telemetry.log_format import formatter


def record(message: str, *, failed: bool = False) -> logging.LogRecord:
    exc_info = None
    if failed:
        try:
            raise ValueError("broken")
        except ValueError:
            exc_info = sys.exc_info()
    made = logging.LogRecord("shoal.x", logging.WARNING, "x.py", 1, message, None, exc_info)
    made.created = 1_800_000_000.25
    return made


def test_a_record_is_one_object_on_one_line() -> None:
    line = formatter("json").format(record('two\nlines, a "quote"'))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "2027-01-15T08:00:00.250Z",
        "level": "warning",
        "logger": "shoal.x",
        "message": 'two\nlines, a "quote"',
    }


def test_the_traceback_of_a_failure_is_a_field() -> None:
    found = json.loads(formatter("json").format(record("failed", failed=True)))
    assert found["error"].endswith("ValueError: broken")


def test_text_has_the_level_and_the_message() -> None:
    assert formatter("text").format(record("slow")).endswith(" WARNING slow")


@pytest.mark.parametrize("command", [["up", "--port", "0"], ["run"]])
@pytest.mark.parametrize(
    ("option", "value", "near"), [("--log-format", "jsn", "json"), ("--log-level", "warn", "warning")]
)
def test_an_unknown_format_or_level_is_one_line(
    command: list[str], option: str, value: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, option, value]) == 2
    assert f'{option}: {option[6:]} "{value}" not found; did you mean {near}?' in capsys.readouterr().err


def test_control_characters_of_a_message_are_visible_in_a_line_of_text() -> None:
    shown = formatter("text").format(record("the pod says \x1b[2J\u202e"))
    assert shown.endswith("the pod says ^[[2J\\u202e")
