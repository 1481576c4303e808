"""Control characters in text from a cluster are shown and not obeyed."""

from __future__ import annotations

import io

import pytest
from rich.table import Table
from rich.text import Text

from shoal.units.visible_text import visible
from shoal.views.text_console import TextConsole


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", "^[[2J"),
        ("a\rb\x07", "a^Mb^G"),
        ("a\nb", "a^Jb"),
        ("\x7f", "^?"),
        ("\x9b31m", "\\x9b31m"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("größe 日本", "größe 日本"),
    ],
)
def test_control_characters_have_a_visible_form(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_newlines_and_tabs_can_stay() -> None:
    assert visible("a\n\tb\x1b", keeps_blanks=True) == "a\n\tb^["


def _console(*, is_terminal: bool) -> TextConsole:
    return TextConsole(
        file=io.StringIO(), force_terminal=is_terminal, color_system="standard", width=60, highlight=False
    )


def _written(console: TextConsole) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_console_writes_no_control_characters_of_texts_and_cells(is_terminal: bool) -> None:
    console = _console(is_terminal=is_terminal)
    console.print("plain \x1b]0;x")
    console.print(Text("text \x1b[2J"), soft_wrap=True)
    table = Table(box=None)
    for name in ("a", "b"):
        table.add_column(name)
    table.add_row("cell \x9b2J", Text("\x1b[8mhidden"))
    console.print(table)
    written = _written(console)
    assert "plain ^[]0;x" in written
    assert "text ^[[2J" in written
    assert "cell \\x9b2J" in written
    assert "^[[8mh" in written
    assert "\x9b" not in written
    assert "\x1b[8m" not in written
    assert "\x1b[2J" not in written


def test_the_colours_of_a_console_stay() -> None:
    console = _console(is_terminal=True)
    line = Text("a", "red") + Text("\x1bb", "green") + Text("c")
    console.print(line, soft_wrap=True)
    assert _written(console) == "\x1b[31ma\x1b[0m\x1b[32m^[\x1b[0m\x1b[32mb\x1b[0m\x1b[31mc\x1b[0m\n"
