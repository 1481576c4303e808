"""Counts what the actions of the fair-share discipline did, for metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ActionCounts:
    tried: Counter[str] = field(default_factory=Counter)
    """Action -> jobs that it tried to serve."""
    served: Counter[str] = field(default_factory=Counter)
    """Action -> jobs that it gave room, or a promise of room."""
    evicted: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(job, action) -> pods that were stopped or moved."""

    def take(self) -> ActionCounts:
        """What was counted since the last call."""
        found = ActionCounts(self.tried, self.served, self.evicted)
        self.tried, self.served, self.evicted = Counter(), Counter(), Counter()
        return found
