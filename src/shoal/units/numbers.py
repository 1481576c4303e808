"""Whole numbers in texts that users write: labels, annotations, names.

Python refuses to read more than 4,300 digits, and `isdigit` takes digits that `int` does not. Every reader of such a
text goes through here, so that no text is an exception.
"""

from __future__ import annotations

LONGEST_HELD = 64 * 1024
"""Characters of a list of the devices that one pod holds: 1,024 devices, more than a node has, by their UUIDs."""
MOST_HELD = 1024
"""Of these devices."""
_MOST_DIGITS = 18
"""What fits 64 bits."""


def whole_of(text: str) -> int | None:
    """The number that ASCII digits and nothing else represent; None for anything else, and for more than 18 digits."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None
