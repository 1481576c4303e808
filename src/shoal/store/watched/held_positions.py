"""The devices that running pods hold: as their kubelet says in the status, else by our own annotation, or by the names
that KAI and HAMi give them.

What a name means is settled node by node, as for manifests; only that pods come and go here, and that nodes may say
what they call their devices after the pods were seen.

Guarantees: what was read of a pod is forgotten with it; what is read anew and means nothing any more changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.engine.device_notation import UNKNOWN_IDS, HeldDevices, device_names, names, positions_of_pod
from shoal.engine.devices.kind import DevicePositions
from shoal.store.watched.parts import Devices
from shoal.store.watched.pod_annotations import PodAnnotationFields
from shoal.units.errors import UserError, Where


class HeldPositions:
    def __init__(self, devices: Devices | None) -> None:
        self._devices = devices
        self._held = HeldDevices()
        self._called: dict[str, Sequence[str]] = {}
        """Pods that only name their devices; and of the names, those that have a number here."""

    def __len__(self) -> int:
        """How much is remembered."""
        return len(self._held) + len(self._called)

    @staticmethod
    def has_any(words: PodAnnotationFields) -> bool:
        """Whether the pod says anything about devices."""
        annotations = words.annotations
        is_reported = words.allocated or names.OWN_DEVICES in annotations or names.HAMI_ALLOCATED in annotations
        return bool(is_reported) or any(name.startswith(names.DEVICE_GROUP) for name in words.labels)

    def positions(
        self, pod: str, node: str, words: PodAnnotationFields, before: DevicePositions = ()
    ) -> DevicePositions:
        """None where the pod says nothing, or nothing that can be read: it gets what is left. `before` is what was
        answered last time."""
        # What the kubelet gave counts: a device plugin may choose other devices than the scheduler.
        reported = self._reported(node, {names.OWN_DEVICES: words.allocated}) if words.allocated else ()
        if not reported and names.OWN_DEVICES in words.annotations:
            reported = self._reported(node, words.annotations)
        called = () if reported else device_names(words.annotations, words.labels)
        if not reported and not called:
            return before
        had = self._called.pop(pod, None)
        if reported:
            self._held.reserve(node, reported)
            found = reported
        else:
            # Numbers are given back after they were asked for: a name that stays keeps its own.
            ids = self._devices.ids(node) if self._devices is not None else UNKNOWN_IDS
            self._called[pod] = [name for name in called if name not in ids.positions]
            found = self._held.named(node, called, ids)
        self._give_back(node, before, had)
        return found

    def release(self, pod: str, node: str, positions: DevicePositions) -> None:
        """It is on the node no more, or has ended; `positions` is what was answered last."""
        self._give_back(node, positions, self._called.pop(pod, None))

    def _give_back(self, node: str, positions: DevicePositions, called: Sequence[str] | None) -> None:
        self._held.release(node, positions if called is None else (), called or ())

    def _reported(self, node: str, annotations: Mapping[str, str]) -> DevicePositions:
        if self._devices is not None:
            return self._devices.positions(annotations, node)
        try:
            return positions_of_pod(annotations, Where())
        except UserError:
            return ()
