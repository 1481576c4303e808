"""The dashboard without colours: every team has a shade or a sign of its own, and what is free is dots.

A frame is drawn as always and its blocks are exchanged by their colour, so that both kinds of frame show the same.
Bold, dim and reversed letters stay: they are no colours, and show where the cursor is.
"""

from __future__ import annotations

from rich.text import Text

from shoal.views.dashboard.colours import Colours

_MARKS = "▇▒░#+o=%*~"
_BLOCKS = frozenset("▇▋█■")
_ATTRIBUTES = frozenset({"bold", "dim", "reverse", "strike"})


def without_colours(frame: Text, colours: Colours) -> Text:
    """The same frame in one colour."""
    marks: dict[str, str] = {}
    for place, colour in enumerate(colours.given()):
        marks.setdefault(colour, _MARKS[place % len(_MARKS)])
    letters = list(frame.plain)
    kept: list[tuple[int, int, str]] = []
    for span in frame.spans:
        words = str(span.style).split()
        attributes = " ".join(word for word in words if word in _ATTRIBUTES)
        if attributes:
            kept.append((span.start, span.end, attributes))
        mark = next((marks[word] for word in words if word in marks), "")
        for at in range(span.start, min(span.end, len(letters))) if mark else ():
            if letters[at] in _BLOCKS:
                letters[at] = mark
    plain = Text("".join(letters), no_wrap=True, overflow="crop")
    for start, end, attributes in kept:
        plain.stylize(attributes, start, end)
    return plain
