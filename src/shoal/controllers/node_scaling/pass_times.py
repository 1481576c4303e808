"""Decides when a pass over all nodes is needed, and when nodes to remove are searched for."""

from __future__ import annotations

from typing import Final

from shoal.cloud.port import CloudInstance

GATHER_S: Final = 1.0
"""Pods are often created one after the other; they are planned together."""
EVERY_S: Final = 10.0
SEARCH_S: Final = 60.0
"""How often nodes to remove are searched for although nothing has changed."""


class PassTimes:
    """What has changed since the last pass and the last search, and when the next ones are due."""

    def __init__(self) -> None:
        self.instances: tuple[CloudInstance, ...] = ()
        """What the cloud had at the last pass."""
        self._has_changed = True
        """Whether anything that a search depends on has changed since the last one."""
        self._searched_s = float("-inf")
        self._is_stirred = True
        """Whether anything at all has changed since the last pass."""
        self._due_s = float("-inf")
        """When a pass is needed although nothing has changed."""

    def note_stir(self) -> None:
        """Something has changed that a pass looks at."""
        self._is_stirred = True

    def note_change(self) -> None:
        """Something has changed that a search depends on."""
        self._has_changed = True

    def idle_s(self, now_s: float) -> float:
        """How long nothing is due, unless the cloud has other instances."""
        return 0.0 if self._is_stirred else max(self._due_s - now_s, 0.0)

    def begin(self) -> None:
        """A pass begins. One that fails is repeated as a whole."""
        self._is_stirred, self._due_s = False, float("-inf")

    def end(self, now_s: float, soonest_s: float | None, *, is_busy: bool) -> None:
        """A pass has ended. `is_busy`: pods wait, and objects matter whose changes are not followed."""
        self._due_s = now_s + min(EVERY_S if is_busy else SEARCH_S, SEARCH_S if soonest_s is None else soonest_s)

    def begins_search(self, now_s: float, *, is_undecided: bool) -> bool:
        """Whether a search is due, which then begins: where nothing has changed, only time can make a difference.
        `is_undecided`: whether a decision waits for its confirmation.
        """
        if not (self._has_changed or is_undecided or now_s - self._searched_s >= SEARCH_S):
            return False
        self._has_changed, self._searched_s = False, now_s
        return True
