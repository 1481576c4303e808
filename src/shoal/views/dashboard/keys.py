"""Turns the bytes that a terminal sends into names of keys.

A printable character is its own name. Escape sequences that name no known key are ignored, so that a mouse or a
function key does nothing. A lone Escape cannot be told from the beginning of a sequence until nothing follows it:
`flush` decides that.
"""

from __future__ import annotations

import re

_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "ctrl-c",
    "\x15": "ctrl-u",
}
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "[C": "right",
    "[D": "left",
    "OA": "up",
    "OB": "down",
    "OC": "right",
    "OD": "left",
    "OM": "enter",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
    "[7~": "home",
    "[8~": "end",
    "[5~": "page-up",
    "[6~": "page-down",
    "[3~": "backspace",
    "[Z": "back-tab",
}
_SEQUENCE = re.compile(r"\x1b(\[[0-9;?<>]*[ -/]*[@-~]|O[@-~])")
_BEGUN = re.compile(r"\x1b(\[[0-9;?<>]*[ -/]*|O?)?\Z")
_LONGEST = 32
"""Of a sequence; what is longer is none."""


class KeyDecoder:
    def __init__(self) -> None:
        self._rest = b""

    @property
    def is_waiting(self) -> bool:
        """Whether the last bytes may be the beginning of a sequence."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[str]:
        data, self._rest = self._rest + data, b""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            # A character may be cut in the middle; anything else is no key.
            is_cut = error.reason == "unexpected end of data" and len(data) - error.start < 4
            text, self._rest = data[: error.start].decode(), data[error.start :] if is_cut else b""
        keys: list[str] = []
        at = 0
        while at < len(text):
            letter = text[at]
            if letter == "\x1b":
                found = _SEQUENCE.match(text, at)
                if found is None and _BEGUN.match(text, at) and len(text) - at < _LONGEST:
                    self._rest = text[at:].encode() + self._rest
                    return keys
                if found is not None:
                    keys += [_SEQUENCES[found[1]]] if found[1] in _SEQUENCES else []
                    at = found.end()
                    continue
                keys.append("escape")
            elif letter in _CONTROLS:
                keys.append(_CONTROLS[letter])
            elif letter.isprintable():
                keys.append(letter)
            at += 1
        return keys

    def flush(self) -> list[str]:
        """Nothing followed: a lone Escape is the key; the rest of a cut sequence is ignored."""
        rest, self._rest = self._rest, b""
        return ["escape"] if rest == b"\x1b" else []
