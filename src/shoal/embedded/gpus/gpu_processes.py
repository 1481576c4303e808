"""Tracks the processes on the GPUs of a node, and how they affect each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.embedded.gpus import contention
from shoal.embedded.gpus.contention import ContentionSettings
from shoal.embedded.gpus.node_gpus import Use


class DeviceShare(msgspec.Struct, frozen=True):
    """One process's part of one GPU or MIG instance."""

    device: PhysicalDevice
    held: int
    """The number of its replicas that the process holds."""
    memory_mib: int


class GpuProcess(msgspec.Struct, frozen=True):
    uid: str
    container: str
    util: float
    slots: tuple[DeviceShare, ...]
    pid: int


class GpuProcesses:
    def __init__(self, sharing: Callable[[], str], rules: ContentionSettings) -> None:
        self._sharing, self._rules = sharing, rules
        self._running: dict[tuple[str, str], GpuProcess] = {}
        self._on: dict[str, dict[tuple[str, str], GpuProcess]] = {}
        """Processes by physical device, oldest first."""
        self._next_pid = 4_000

    def start(self, uid: str, container: str, devices: Sequence[PhysicalDevice], use: Use) -> str | None:
        self.stop(uid, container)
        slots: list[DeviceShare] = []
        for device in {one.physical: one for one in devices}.values():
            held = sum(one.physical == device.physical for one in devices)
            wanted = use.memory_mib
            if wanted is None:
                wanted = contention.usual_memory(device.memory_mib, device.replicas, held, self._rules)
            error = self._memory_error(device, held, wanted)
            if error is not None:
                return error
            slots.append(DeviceShare(device, held, wanted))
        self._next_pid += 37
        program = GpuProcess(uid, container, min(max(use.util, 0.0), 1.0), tuple(slots), self._next_pid)
        self._running[uid, container] = program
        for slot in slots:
            self._on.setdefault(slot.device.physical, {})[uid, container] = program
        return None

    def stop(self, uid: str, container: str) -> None:
        program = self._running.pop((uid, container), None)
        for slot in program.slots if program is not None else ():
            on = self._on[slot.device.physical]
            del on[uid, container]
            if not on:
                del self._on[slot.device.physical]

    def stop_pod(self, uid: str) -> None:
        for key in [key for key in self._running if key[0] == uid]:
            self.stop(*key)

    def of(self, uid: str) -> Iterator[GpuProcess]:
        return (program for key, program in self._running.items() if key[0] == uid)

    def on(self, physical: str) -> Sequence[GpuProcess]:
        """Oldest first."""
        return tuple(self._on.get(physical, {}).values())

    def on_gpu(self, gpu: int) -> list[GpuProcess]:
        """Programs on a GPU and all of its instances, oldest first."""
        return [one for one in self._running.values() if any(slot.device.gpu == gpu for slot in one.slots)]

    def memory_mib(self, physical: str) -> int:
        return sum(slot.memory_mib for one in self.on(physical) for slot in one.slots if _is(slot, physical))

    def pace(self, uid: str) -> float:
        return min((self._pace(program) for program in self.of(uid)), default=1.0)

    def share(self, program: GpuProcess, physical: str) -> float:
        """The share of a device that a program actually gets beside other programs."""
        return program.util * self._pace_on(program, physical)

    def _pace(self, program: GpuProcess) -> float:
        return min((self._pace_on(program, slot.device.physical) for slot in program.slots), default=1.0)

    def _pace_on(self, program: GpuProcess, physical: str) -> float:
        others = [one.util for one in self._on.get(physical, {}).values() if one is not program]
        return contention.pace(program.util, others, self._sharing(), self._rules) if others else 1.0

    def _memory_error(self, device: PhysicalDevice, held: int, wanted: int) -> str | None:
        limit = contention.memory_limit(device.memory_mib, device.replicas, held, self._sharing(), self._rules)
        whole = contention.memory_limit(device.memory_mib, 1, 1, "", self._rules)
        free = min(limit, whole - self.memory_mib(device.physical))
        if not self._rules.is_on or wanted <= free:
            return None
        return contention.out_of_memory(0, wanted, limit, free)


def _is(slot: DeviceShare, physical: str) -> bool:
    return slot.device.physical == physical
