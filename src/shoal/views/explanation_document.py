"""Builds the document of an explanation, with everything that is printed under the same headings."""

from __future__ import annotations

import msgspec

from shoal.views.explanation import Explanation
from shoal.views.remedies import Remedy


class Chapter(msgspec.Struct, frozen=True):
    heading: str
    lines: list[str]


class StoryDocument(msgspec.Struct, frozen=True):
    name: str
    outcome: str
    code: str
    """One of the closed list where it waits, else empty."""
    chapters: list[Chapter]
    remedies: list[Remedy]
    """What is printed under `would help`, with its commands apart; each was tried."""


def document_of(explanation: Explanation) -> StoryDocument:
    chapters = [Chapter(heading, lines) for heading, lines in explanation.chapters]
    code = str(explanation.code)
    return StoryDocument(explanation.title, explanation.outcome, code, chapters, explanation.remedies)
