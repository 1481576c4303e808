"""Prints text and tables without the control characters of their contents; its own colour codes stay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from shoal.units.visible_text import visible


class TextConsole(Console):
    has_headings = True
    """Whether tables have their headings."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(visible(text, keeps_blanks=True), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Texts are made visible before they are folded; what still comes from elsewhere, afterwards."""
        found = visible_text(renderable) if isinstance(renderable, Text) else renderable
        for segment in super().render(found, options):
            shown = segment.text if segment.control else visible(segment.text, keeps_blanks=True)
            yield segment if shown == segment.text else Segment(shown, segment.style)


def visible_text(text: Text) -> Text:
    """With its styles."""
    plain = text.plain
    if visible(plain, keeps_blanks=True) == plain:
        return text
    at = [index for index, each in enumerate(plain) if visible(each, keeps_blanks=True) != each]
    parts = text.divide(sorted({edge for index in at for edge in (index, index + 1)}))
    for part in parts:
        shown = visible(part.plain, keeps_blanks=True)
        if shown != part.plain:
            part.plain = shown
            part.spans = [Span(0, len(shown), span.style) for span in part.spans]
    return text.blank_copy().join(parts)
