"""Builds the document of an explanation, with everything that is printed under the same headings."""

from __future__ import annotations

import msgspec

from shoal.views.explanation import Explanation


class Chapter(msgspec.Struct, frozen=True):
    heading: str
    lines: list[str]


class StoryDocument(msgspec.Struct, frozen=True):
    name: str
    outcome: str
    code: str
    """One of the closed list where it waits, else empty."""
    chapters: list[Chapter]


def document_of(explanation: Explanation) -> StoryDocument:
    chapters = [Chapter(heading, lines) for heading, lines in explanation.chapters]
    return StoryDocument(explanation.title, explanation.outcome, str(explanation.code), chapters)
