"""The dashboard without colours: every team has a shade or a sign of its own, and what is free is dots.

A frame is drawn as always and its blocks are exchanged by their colour, so that both kinds of frame show the same.
"""

from __future__ import annotations

from rich.text import Text

from shoal.views.dashboard.colours import AWAY, FREE, Colours

_MARKS = "▇▒░#+o=%*~"
_BLOCKS = frozenset("▇▋█■")


def without_colours(frame: Text, colours: Colours) -> Text:
    """The same frame in one colour."""
    marks = {FREE: "·", AWAY: "·"}
    for place, colour in enumerate(colours.given()):
        marks.setdefault(colour, _MARKS[place % len(_MARKS)])
    letters = list(frame.plain)
    for span in frame.spans:
        mark = marks.get(str(span.style))
        for at in range(span.start, min(span.end, len(letters))) if mark else ():
            if letters[at] in _BLOCKS:
                letters[at] = mark or letters[at]
    return Text("".join(letters), no_wrap=True, overflow="crop")
