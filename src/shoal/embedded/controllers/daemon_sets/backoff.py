"""Computes how long a failed daemon pod is not replaced: doubled with each failure on a node, up to 15 minutes.

Without the delay, a pod that cannot run on a node would be created and deleted continuously.
"""

from __future__ import annotations

_SHORTEST_S, _LONGEST_S = 1.0, 900.0


class Backoff:
    def __init__(self) -> None:
        self._waits: dict[tuple[str, str], tuple[float, float]] = {}
        """(owner, node) -> the last delay, and since when."""

    def left_s(self, key: tuple[str, str], now_s: float) -> float:
        wait_s, since_s = self._waits.get(key, (0.0, now_s))
        return max(since_s + wait_s - now_s, 0.0)

    def next(self, key: tuple[str, str], now_s: float) -> None:
        """Records a failure; after a long time without one the delay starts again."""
        wait_s, since_s = self._waits.get(key, (0.0, now_s))
        fresh = not wait_s or now_s - since_s > 2 * _LONGEST_S
        self._waits[key] = (_SHORTEST_S if fresh else min(wait_s * 2, _LONGEST_S), now_s)

    def forget(self, owner: str) -> None:
        for key in [key for key in self._waits if key[0] == owner]:
            del self._waits[key]
