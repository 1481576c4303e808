"""Answers about texts, kept for the next time: fleets repeat a few thousand spellings for ever.

Only answers about texts of ordinary length are kept. Their number is bounded, but a client
that sends texts of megabytes could still fill the memory with a few thousand of them; results for long texts are
computed each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

A = TypeVar("A")
LONGEST = 512
"""In letters: twice the longest name there is."""


def kept(most: int) -> Callable[[Callable[[str], A]], Callable[[str], A]]:
    """Caches this number of results of a function; callers do not change the results."""

    def keeping(answer: Callable[[str], A]) -> Callable[[str], A]:
        known = lru_cache(maxsize=most)(answer)

        @wraps(answer)
        def recalled(text: str) -> A:
            return known(text) if len(text) <= LONGEST else answer(text)

        return recalled

    return keeping
