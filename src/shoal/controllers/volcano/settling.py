"""Whether what is to be said of a waiting group is its state, or a count under way.

A gang's pods come one by one and are refused one by one, so that its words pass through a dozen counts within a second
of which none was ever decided. Words count once nothing has changed them for a moment, and after a longer one even so.

Volcano says them once a session, a second apart, whatever they are by then.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from shoal.store.live.item import Key

SETTLE_S = 1.0
"""Longer than a round and the writes that follow it."""
PATIENCE_S = 10.0


class _Draft(NamedTuple):
    words: str
    since_s: float
    first_s: float
    """Since when other words than those that were said are due."""


class Settling:
    def __init__(self) -> None:
        self._drafts: dict[Key, _Draft] = {}

    @property
    def is_due(self) -> bool:
        """Whether words wait to be said."""
        return bool(self._drafts)

    def are_settled(self, key: Key, words: str, now_s: float) -> bool:
        """Words that are to be said of a group, as they are at this look."""
        draft = self._drafts.get(key)
        if draft is None or draft.words != words:
            draft = self._drafts[key] = _Draft(words, now_s, draft.first_s if draft is not None else now_s)
        return now_s - draft.since_s >= SETTLE_S or now_s - draft.first_s >= PATIENCE_S

    def said(self, key: Key) -> None:
        """Or there is nothing to be said."""
        self._drafts.pop(key, None)

    def keep(self, there: Container[str]) -> None:
        """Those alone, by namespace/name."""
        for key in [key for key in self._drafts if "/".join(key) not in there]:
            del self._drafts[key]
