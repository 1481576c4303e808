"""Determines the devices that running pods hold, from the pod status that the kubelet wrote, else from Shoal's
annotation, or from the names that KAI and HAMi write.

Names are resolved for each node, as for manifests; here pods come and go, and the device names of a node may become
known after its pods were seen.

Guarantees: the devices of a pod are forgotten with it; a value that is read again and is now invalid changes nothing.
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
        """Pods whose devices are known by name only, with those names that have an assigned number."""

    def __len__(self) -> int:
        """The number of stored entries."""
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
        """The positions of the pod's devices; None where it names none, or none that can be read: it then gets the
        remaining devices. `before`: the previous result.
        """
        # The kubelet's allocation takes precedence: a device plugin may choose other devices than the scheduler.
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
            # Numbers are released after new ones are assigned, so that a remaining name keeps its number.
            ids = self._devices.ids(node) if self._devices is not None else UNKNOWN_IDS
            self._called[pod] = [name for name in called if name not in ids.positions]
            found = self._held.named(node, called, ids)
        self._give_back(node, before, had)
        return found

    def release(self, pod: str, node: str, positions: DevicePositions) -> None:
        """The pod has left the node, or has ended; `positions`: the previous result."""
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
