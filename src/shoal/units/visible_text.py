"""Makes control characters visible in text that a terminal shows.

Users of a cluster write conditions, Events and names. A terminal obeys control characters in them: it would move the
cursor, change the title of the window, or show a line in another order than it is written.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_DELETE, _FIRST_C1, _BLANKS = 0x7F, 0x80, "\n\t"


def visible(text: str, *, keeps_blanks: bool = False) -> str:
    """ESC as `^[`, as kubectl shows it, and others alike. `keeps_blanks`: newlines and tabs stay as they are."""
    return _CONTROLS.sub(lambda found: _form(found[0], keeps_blanks=keeps_blanks), text)


def _form(character: str, *, keeps_blanks: bool) -> str:
    if keeps_blanks and character in _BLANKS:
        return character
    code = ord(character)
    if code < _FIRST_C1:
        return f"^{chr(code ^ 0x40)}"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
