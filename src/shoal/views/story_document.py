"""A story as a document for programs: what is shown on the screen, under the same headings, with nothing left out."""

from __future__ import annotations

import msgspec

from shoal.views.story import Story


class Chapter(msgspec.Struct, frozen=True):
    heading: str
    lines: list[str]


class StoryDocument(msgspec.Struct, frozen=True):
    name: str
    outcome: str
    code: str
    """One of the closed list where it waits, else empty."""
    chapters: list[Chapter]


def document_of(story: Story) -> StoryDocument:
    chapters = [Chapter(heading, lines) for heading, lines in story.chapters]
    return StoryDocument(story.title, story.outcome, str(story.code), chapters)
