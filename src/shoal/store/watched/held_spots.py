"""The devices that running pods say they hold: by our own annotation, or by the names that KAI and HAMi give them.

What a name means is settled node by node, as for manifests; only that pods come and go here.
"""

from __future__ import annotations

from shoal.engine.devices.kind import Spots
from shoal.engine.spelling import HeldDevices, names, spots_of_pod
from shoal.store.watched.parts import Devices
from shoal.store.watched.pod_words import Words
from shoal.units.errors import UserError, Where


class HeldSpots:
    def __init__(self, devices: Devices | None) -> None:
        self._devices = devices
        self._named = HeldDevices()

    @staticmethod
    def has_any(words: Words) -> bool:
        """Whether the pod says anything about devices."""
        annotations = words.annotations
        is_told = names.OWN_DEVICES in annotations or names.HAMI_ALLOCATED in annotations
        return is_told or any(name.startswith(names.DEVICE_GROUP) for name in words.labels)

    def spots(self, node: str, words: Words) -> Spots:
        """None where the pod says nothing, or nothing that can be read: it gets what is left."""
        if names.OWN_DEVICES in words.annotations:
            spots = self._told(node, words)
            if spots:
                self._named.reserve(node, spots)
                return spots
        return self._named.spots(node, words.annotations, words.labels)

    def _told(self, node: str, words: Words) -> Spots:
        if self._devices is not None:
            return self._devices.spots(words.annotations, node)
        try:
            return spots_of_pod(words.annotations, Where())
        except UserError:
            return ()
