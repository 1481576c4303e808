"""Changes MIG modes and instances of simulated GPUs.

A device that a pod holds is in use, as if a program of the pod were running on it. Each simulated GPU instance has one
compute instance. Modes of simulated GPUs change without a reset, also those of models that need one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shoal.data.gpus import find_model
from shoal.data.mig import Layout
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut, Gpu
from shoal.devices.mig_port import GpuInstance, MigChangeError
from shoal.devices.port import UnknownGpuError
from shoal.devices.xids import Xid
from shoal.embedded.machines.machine import Machine
from shoal.embedded.machines.mig_cuts import new_cut


class DividedNode(Protocol):
    """The GPUs of a simulated node, as far as their MIG layout is concerned."""

    machine: Machine

    @property
    def gpus(self) -> Sequence[Gpu]: ...
    def xid(self, index: int) -> Xid | None: ...
    def is_used(self, gpu: int) -> bool: ...
    def is_instance_used(self, uuid: str) -> bool: ...
    def change_gpu(self, index: int, gpu: Gpu) -> None: ...


class SimulatedMigControl:
    """Implements MigControl."""

    def __init__(self, node: DividedNode) -> None:
        self._node = node

    def instances(self, uuid: str) -> tuple[GpuInstance, ...]:
        slot = self._slot(uuid)
        return tuple(
            GpuInstance(one.instance, one.profile.name, one.start, one.profile.width, (one.profile.compute,))
            for one in self._gpu(slot).cuts
        )

    def set_mode(self, uuid: str, *, enabled: bool) -> bool:
        slot = self._slot(uuid)
        what = f"cannot {'enable' if enabled else 'disable'} MIG mode"
        self._facts(slot, what)
        if self._gpu(slot).is_mig != enabled:
            if self._node.is_used(slot.index):
                raise MigChangeError("in-use", f"{what}: it is in use by another client")
            self._node.change_gpu(slot.index, Gpu(is_mig=enabled))
        return True

    def create(self, uuid: str, profile: str, start: int, compute: tuple[int, ...]) -> None:
        slot = self._slot(uuid)
        what = f"cannot create {profile} at slice {start}"
        facts, gpu = self._facts(slot, what), self._gpu(slot)
        found = facts.profile(profile)
        if found is None or not gpu.is_mig or compute != (found.compute,):
            raise MigChangeError("not-supported", f"{what}: the GPU or its driver does not support it")
        if start not in found.starts:
            raise MigChangeError("no-room", f"{what}: the GPU has no such place")
        taken = any(_overlaps(one, start, found.width) for one in gpu.cuts)
        if taken or (found.holds_media() and any(one.profile.holds_media() for one in gpu.cuts)):
            raise MigChangeError("no-room", f"{what}: the GPU has not enough free slices")
        one = new_cut(self._node.machine.name, slot.index, facts, (found.name, start), slot.memory_mib)
        cuts = sorted((*gpu.cuts, one), key=lambda cut: cut.start)
        self._node.change_gpu(slot.index, Gpu(is_mig=True, cuts=tuple(cuts)))

    def destroy(self, uuid: str, number: int) -> None:
        slot = self._slot(uuid)
        gpu = self._gpu(slot)
        for one in gpu.cuts:
            if one.instance == number:
                if self._node.is_instance_used(one.uuid):
                    raise MigChangeError("in-use", f"cannot destroy instance {number}: it is in use by another client")
                left = tuple(each for each in gpu.cuts if each != one)
                self._node.change_gpu(slot.index, Gpu(is_mig=True, cuts=left))

    def _slot(self, uuid: str) -> GpuSlot:
        found = next((one for one in self._node.machine.gpus if one.uuid == uuid), None)
        if found is None:
            raise UnknownGpuError(uuid)
        fault = self._node.xid(found.index)
        if fault is not None and fault.is_lost:
            raise MigChangeError("lost", "cannot use the GPU: the GPU does not respond")
        return found

    def _gpu(self, slot: GpuSlot) -> Gpu:
        return self._node.gpus[slot.index]

    def _facts(self, slot: GpuSlot, what: str) -> Layout:
        model = find_model(slot.model)
        facts = model.mig_layout() if model is not None else None
        if facts is None:
            raise MigChangeError("not-supported", f"{what}: the GPU or its driver does not support it")
        return facts


def _overlaps(one: Cut, start: int, width: int) -> bool:
    return start < one.start + one.profile.width and one.start < start + width
