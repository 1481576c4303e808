"""Limits wrong tokens by the address of the client, so that guessing is slow and cannot fill the log."""

from __future__ import annotations

from collections import OrderedDict

_MOST, _WINDOW_S = 5, 60.0
_ADDRESSES = 1024


class FailedAttempts:
    """Pure: callers pass the time."""

    def __init__(self, most: int = _MOST, window_s: float = _WINDOW_S, addresses: int = _ADDRESSES) -> None:
        self._most, self._window_s, self._addresses = most, window_s, addresses
        self._found: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """The number of failures of each address, and when its window ends."""

    def wait_s(self, address: str, now_s: float) -> float:
        """How long the address must wait before its next attempt; 0 if it may try now."""
        count, ends_s = self._found.get(address, (0, 0.0))
        return max(ends_s - now_s, 0.0) if count >= self._most else 0.0

    def failed(self, address: str, now_s: float) -> None:
        count, ends_s = self._found.pop(address, (0, 0.0))
        if now_s >= ends_s:
            count, ends_s = 0, now_s + self._window_s
        self._found[address] = (count + 1, ends_s)
        while len(self._found) > self._addresses:
            self._found.popitem(last=False)

    def succeeded(self, address: str) -> None:
        self._found.pop(address, None)
