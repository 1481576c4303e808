"""The bytes of a terminal become keys, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.views.dashboard.keys import KeyDecoder

CASES = {
    "letters are their own names": (b"qG/", ["q", "G", "/"]),
    "letters beyond ASCII are letters": ("é漢".encode(), ["é", "漢"]),
    "arrows come as sequences": (b"\x1b[A\x1b[B\x1bOC\x1b[D", ["up", "down", "right", "left"]),
    "paging keys": (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["page-up", "page-down", "home", "end"]),
    "Tab and Shift-Tab": (b"\t\x1b[Z", ["tab", "back-tab"]),
    "Enter, Backspace and Ctrl-C": (b"\r\x7f\x03", ["enter", "backspace", "ctrl-c"]),
    "a mouse and a function key are no keys": (b"\x1b[<0;10;5M\x1b[15~q", ["q"]),
    "Alt with a letter is Escape and the letter": (b"\x1bq", ["escape", "q"]),
    "bytes that are no text are no keys": (b"\xff\xfeq", []),
    "control characters are no keys": (b"\x00\x01q", ["q"]),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_become_keys(name: str) -> None:
    data, keys = CASES[name]
    assert KeyDecoder().feed(data) == keys


@pytest.mark.parametrize("name", [name for name in CASES if "Alt" not in name and "no text" not in name])
def test_bytes_that_arrive_one_by_one_are_the_same_keys(name: str) -> None:
    data, keys = CASES[name]
    decoder = KeyDecoder()
    found = [key for byte in data for key in decoder.feed(bytes([byte]))]
    assert found + decoder.flush() == keys


def test_a_lone_escape_is_a_key_once_nothing_follows() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.is_waiting
    assert decoder.flush() == ["escape"]
    assert decoder.flush() == []


def test_a_complete_key_leaves_nothing_to_wait_for() -> None:
    decoder = KeyDecoder()
    decoder.feed(b"\x1b[A")
    assert not decoder.is_waiting


def test_the_rest_of_a_cut_sequence_is_no_key() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b[5") == []
    assert decoder.flush() == []


@given(st.lists(st.binary(max_size=12), max_size=8))
def test_no_bytes_break_it_and_every_key_is_a_name_or_a_letter(chunks: list[bytes]) -> None:
    decoder = KeyDecoder()
    for chunk in chunks:
        assert all(key.isprintable() and key for key in decoder.feed(chunk))
    decoder.flush()
