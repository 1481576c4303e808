"""Allocates devices to pods as the kubelet's device manager does, with its messages on failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from shoal.devices import topology_manager
from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.chosen_devices import Choice
from shoal.devices.device_requests import DeviceRequest, asks_of
from shoal.devices.gpu_groups import Scores
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.pod_refusal import Refused
from shoal.devices.preferred_allocation import choose
from shoal.devices.requested_devices import request_problem

Obj = dict[str, Any]
Pool = Mapping[str, Sequence[PhysicalDevice]]


class HeldDevices(msgspec.Struct, frozen=True):
    container: str
    resource: str
    devices: tuple[PhysicalDevice, ...]


class AllocationRules(msgspec.Struct, frozen=True):
    """The settings of the node's topology manager and of the device plugin."""

    policy: str = "none"
    plugin: PluginConfig = PluginConfig()
    scores: Scores = {}
    """Of the connections between the node's GPUs."""


class _RefusedError(Exception):
    """Aborts the admission of a pod."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused


class DeviceAllocation:
    def __init__(self, is_healthy: Callable[[PhysicalDevice], bool]) -> None:
        self._is_healthy = is_healthy
        self._held: dict[str, tuple[HeldDevices, ...]] = {}
        self._taken: dict[str, str] = {}
        """The pod that holds each device, by the device's id."""

    def of(self, uid: str) -> tuple[HeldDevices, ...]:
        return self._held.get(uid, ())

    def items(self) -> Iterator[tuple[str, tuple[HeldDevices, ...]]]:
        # Copied, because another thread may read them.
        yield from [*self._held.items()]

    def is_used(self, gpu: int) -> bool:
        return any(device.gpu == gpu for held in self._held.values() for one in held for device in one.devices)

    def held_device(self, device_id: str) -> PhysicalDevice | None:
        """The device with this id, while a pod holds it."""
        held = self._held.get(self._taken.get(device_id, ""), ())
        return next((device for one in held for device in one.devices if device.id == device_id), None)

    def release(self, uid: str) -> None:
        for one in self._held.pop(uid, ()):
            for device in one.devices:
                # The pods of one claim hold the same device.
                if self._taken.get(device.id) == uid:
                    del self._taken[device.id]

    def put(self, uid: str, held: Sequence[HeldDevices]) -> None:
        self._held[uid] = tuple(held)
        for one in held:
            for device in one.devices:
                self._taken[device.id] = uid

    def restore(self, uid: str, held: Sequence[HeldDevices]) -> None:
        """Record the devices of a running pod; a device of another pod is not allocated twice."""
        kept = [
            msgspec.structs.replace(one, devices=tuple(device for device in one.devices if self.is_free(device)))
            for one in held
        ]
        self.put(uid, [one for one in kept if one.devices])

    def is_free(self, device: PhysicalDevice) -> bool:
        return device.id not in self._taken

    def admit(self, pod: Obj, pool: Pool, rules: AllocationRules) -> tuple[HeldDevices, ...] | Refused:
        """Allocate devices to all containers of a pod, or to none. Resources that the node never had are ignored."""
        uid = pod["metadata"]["uid"]
        if uid in self._held:
            return self._again(uid)
        trial = _Trial(self, pool, rules, Choice(pod))
        try:
            for ask in asks_of(pod):
                trial.give(msgspec.structs.replace(ask, amounts=tuple(a for a in ask.amounts if a[0] in pool)))
        except _RefusedError as error:
            return error.refused
        if trial.held:
            self.put(uid, trial.held)
        return tuple(trial.held)

    def healthy(self, devices: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
        return [device for device in devices if self._is_healthy(device)]

    def _again(self, uid: str) -> tuple[HeldDevices, ...] | Refused:
        """A restarted container keeps its devices if they are healthy."""
        for one in self._held[uid]:
            if len(self.healthy(one.devices)) < len(one.devices):
                return _unexpected(
                    "previously allocated devices are no longer healthy; "
                    f"cannot allocate unhealthy devices {one.resource}"
                )
        return self._held[uid]


class _Trial:
    """The admission of one pod: devices are recorded only if all containers get theirs."""

    def __init__(self, allocation: DeviceAllocation, pool: Pool, rules: AllocationRules, choice: Choice) -> None:
        self._allocation, self._pool, self._rules, self._choice = allocation, pool, rules, choice
        self._reusable: dict[str, list[PhysicalDevice]] = {}
        self._given: set[str] = set()
        self.held: list[HeldDevices] = []

    def give(self, ask: DeviceRequest) -> None:
        free = {name: self._free(name) for name, _ in ask.amounts}
        every = {name: self._pool[name] for name, _ in ask.amounts}
        reusable = {name: [*self._reusable.get(name, ()), *free[name]] for name in free}
        nodes = topology_manager.nodes_for(self._rules.policy, ask.amounts, reusable, every)
        if isinstance(nodes, Refused):
            raise _RefusedError(nodes)
        for name, count in ask.amounts:
            devices = self._devices(ask.container, name, count, nodes)
            self._check(name, devices)
            self._given.update(device.id for device in devices)
            self.held.append(HeldDevices(ask.container, name, tuple(devices)))
            left = [device for device in self._reusable.get(name, ()) if device not in devices]
            self._reusable[name] = [*left, *devices] if ask.is_passing else left

    def _free(self, name: str) -> list[PhysicalDevice]:
        healthy = self._allocation.healthy(self._pool[name])
        return [one for one in healthy if self._allocation.is_free(one) and one.id not in self._given]

    def _devices(self, container: str, name: str, count: int, nodes: frozenset[int] | None) -> list[PhysicalDevice]:
        pool, free, kept = self._pool[name], self._free(name), self._reusable.get(name, [])[:count]
        if not self._allocation.healthy(pool):
            raise _refused(f"no healthy devices present; cannot allocate unhealthy devices {name}")
        missing = count - len(kept)
        if len(free) < missing:
            raise _refused(
                f"requested number of devices unavailable for {name}. Requested: {missing}, Available: {len(free)}"
            )
        available = [*self._reusable.get(name, ()), *free]
        chosen = self._choice.wanted(container, name, count, [*available, *self._replaceable(pool)])
        if isinstance(chosen, str) or (chosen is not None and len(chosen) != count):
            missing_id = chosen if isinstance(chosen, str) else ", ".join(device.id for device in chosen or ())
            raise _refused(f"the devices chosen for {name} are not available: {missing_id}")
        if chosen is not None:
            preferred = [device for device in chosen if device in available]
            if len(preferred) == count:
                return preferred
            kept = [*preferred, *(device for device in kept if device not in preferred)][:count]
            free = [device for device in free if device not in kept]
            missing = count - len(kept)
        near = free if nodes is None else [device for device in free if device.numa in nodes]
        usable = near if len(near) >= missing else free
        return choose(usable, kept, pool, count, packed=self._rules.plugin.packed, scores=self._rules.scores)

    def _check(self, name: str, devices: Sequence[PhysicalDevice]) -> None:
        known = {device.id for device in self._pool[name]}
        problem = request_problem([device.id for device in devices], known, self._rules.plugin)
        if problem is not None:
            raise _refused(f"rpc error: code = Unknown desc = {problem.message}")

    def _replaceable(self, pool: Sequence[PhysicalDevice]) -> list[PhysicalDevice]:
        """Devices of other pods that a choice may name: they are replaced by other whole GPUs, because a device plugin
        can only prefer some of the free devices.
        """
        if any(device.cut is not None or device.replicas > 1 for device in pool):
            return []
        return [device for device in self._allocation.healthy(pool) if not self._allocation.is_free(device)]


def _refused(why: str) -> _RefusedError:
    return _RefusedError(_unexpected(why))


def _unexpected(why: str) -> Refused:
    return Refused("UnexpectedAdmissionError", f"Allocate failed due to {why}, which is unexpected")
