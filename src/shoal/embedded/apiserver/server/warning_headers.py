"""Warnings of a write as headers of its answer.

The write is done when they are sent: whatever a warning contains (names of fields, words of webhooks), it must not
cost the client its answer. So nothing goes out that a header cannot carry, and no more than clients read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_MOST_LETTERS = 4096
"""Of all warnings together; warnings are sent in full up to this size."""
_MOST_OF_ONE = 256
_MOST = 64
"""Headers: Python's clients refuse an answer with more than a hundred."""


def headers_of(warnings: Sequence[str]) -> Iterator[str]:
    """The values of the `Warning` headers, each warning once."""
    texts: list[str] = []
    size = 0
    for text in dict.fromkeys(warnings):
        if size > _MOST_LETTERS or len(texts) == _MOST:
            break
        texts.append(_printable(text))
        size += min(len(text), _MOST_OF_ONE)
    if sum(map(len, texts)) > _MOST_LETTERS:
        texts = _shortened(texts)
    for text in texts:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        yield f'299 - "{quoted}"'


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _shortened(texts: Sequence[str]) -> list[str]:
    """Each cut, and of those as many as there is capacity for."""
    kept: list[str] = []
    room = _MOST_LETTERS
    for text in texts:
        cut = text[:_MOST_OF_ONE]
        if len(cut) > room:
            break
        kept.append(cut)
        room -= len(cut)
    return kept
