"""Says on queued pods, and on who keeps them, that they can never be admitted as they are written.

The condition of a pod remembers that it was told. Who keeps pods is told once: controllers of such kinds write their
conditions anew with each status, and a condition of ours would go with the next.
"""

from __future__ import annotations

from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_work.quota_condition import Fault
from shoal.store.live.item import Key

_MOST_TOLD = 10_000


class Refusing:
    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._told: dict[Key, Fault] = {}
        """Of those that somebody keeps."""

    async def tell(self, scene: Scene, fault: Fault | None) -> None:
        """None: there is nothing to be mended any more."""
        if fault is None:
            self._told.pop(scene.key, None)
        elif scene.parent is not None and self._told.get(scene.key) != fault:
            if len(self._told) >= _MOST_TOLD:
                # Many may be gone; to say it again to the others does no harm.
                self._told.clear()
            self._told[scene.key] = fault
            self._hand.tell_object(scene.parent.obj, scene.parent.kind, *fault, "Warning")
        await self._hand.mark(scene.pods, fault)
