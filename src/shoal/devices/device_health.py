"""Decides which GPUs of a node are healthy, from Xid errors and readings, and when a GPU has recovered.

An Xid that the device plugin heeds makes its GPU unhealthy until the GPU was reset. There are three signs of a reset:
the driver, which recommended an action before, recommends none; the GPU was lost and is listed again; its energy, which
counts since the driver was loaded, has fallen. An Xid after which the driver recommends nothing ends after a minute.

Warnings do not make a GPU unhealthy: a pending row remap, clocks reduced by heat, NVLink connections that were lost.
The original device plugin never lets a GPU recover without a restart, and marks only one replica of a shared GPU; both
are known faults of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from shoal.devices.port import GpuList, GpuReadings, InstalledGpu, LostGpu, RecoveryAction, XidEvent
from shoal.devices.xids import ADVICE, HealthChecks, XidAction, xid_of

_SETTLE_S = 60.0
_THERMAL = ("hw_thermal_slowdown", "sw_thermal_slowdown")
_MOST_XIDS = 64
"""Per GPU; a GPU with more is unhealthy by the first ones."""
_RECOVERIES: dict[RecoveryAction, XidAction] = {
    "reset": "reset",
    "reboot": "reboot",
    "drain-p2p": "nvlink",
    "drain-and-reset": "drain-and-reset",
    "bus-reset": "power-cycle",
}
"""`recover-imex` is about the communication between nodes; the GPU itself works."""


class HealthCause(msgspec.Struct, frozen=True):
    code: str
    """`xid-79`, `lost`, `row-remap-failed`, ...: it does not change while the cause lasts."""
    message: str
    advice: str
    is_unhealthy: bool
    """False: a warning."""
    instance: int | None = None
    """The GPU instance concerned; None: the whole GPU."""


class DeviceHealth(msgspec.Struct, frozen=True):
    index: int
    uuid: str
    causes: tuple[HealthCause, ...] = ()

    @property
    def is_healthy(self) -> bool:
        return not any(cause.is_unhealthy for cause in self.causes)

    def allows(self, instance: int | None) -> bool:
        """Whether this GPU instance can be used; None: the whole GPU. A cause of the whole GPU is one of each instance,
        and a cause of any instance is one of the whole GPU.
        """
        unhealthy = [cause for cause in self.causes if cause.is_unhealthy]
        return not any(instance is None or cause.instance in (None, instance) for cause in unhealthy)


class _Recorded(msgspec.Struct, frozen=True):
    xid: int
    instance: int | None
    at_s: float
    energy_mj: int | None
    """At the time of the error."""
    was_recommended: bool = False
    """Whether the driver has recommended an action since."""


class NodeHealth:
    """Not safe for use by several threads at once."""

    def __init__(self, checks: HealthChecks | None = None) -> None:
        self._checks = checks if checks is not None else HealthChecks()
        self._gpus: dict[str, InstalledGpu] = {}
        self._readings: dict[str, GpuReadings] = {}
        self._xids: dict[str, list[_Recorded]] = {}
        self._lost: dict[str, LostGpu] = {}
        self._silent: frozenset[str] = frozenset()
        self._links: dict[str, int] = {}
        """The most NVLink connections that each GPU has had."""

    def record(self, event: XidEvent, at_s: float) -> None:
        found = self._xids.setdefault(event.uuid, [])
        readings = self._readings.get(event.uuid)
        recorded = _Recorded(event.xid, event.instance, at_s, None if readings is None else readings.energy_mj)
        if len(found) < _MOST_XIDS:
            found[:] = [one for one in found if (one.xid, one.instance) != (event.xid, event.instance)]
            found.append(recorded)

    def update(
        self,
        listed: GpuList,
        readings: Mapping[str, GpuReadings | LostGpu],
        at_s: float,
        silent: Collection[str] = (),
    ) -> None:
        """Take over a list of the driver with the readings of each GPU. `silent`: those whose reading does not end, by
        UUID. A GPU that answers again later need not have had a reset, unlike one that was lost.
        """
        before, self._silent = self._lost, frozenset(silent)
        self._lost = {one.uuid or f"GPU {one.index}": one for one in listed.lost}
        self._lost |= {uuid: one for uuid, one in readings.items() if isinstance(one, LostGpu)}
        for gpu in listed.gpus:
            self._gpus[gpu.uuid] = gpu
            links = sum(peer.links for peer in gpu.peers)
            self._links[gpu.uuid] = max(links, self._links.get(gpu.uuid, 0))
            reading = readings.get(gpu.uuid)
            if isinstance(reading, GpuReadings):
                was_lost = gpu.uuid in before and gpu.uuid not in self._lost
                self._xids[gpu.uuid] = [
                    kept
                    for one in self._xids.get(gpu.uuid, ())
                    if (kept := _unrecovered(one, reading, at_s, was_lost=was_lost)) is not None
                ]
                self._readings[gpu.uuid] = reading
        # A GPU that is neither listed nor lost was removed or is hidden from this process.
        known = {gpu.uuid for gpu in listed.gpus} | set(self._lost)
        for uuid in [one for one in self._gpus if one not in known]:
            for values in (self._gpus, self._readings, self._xids, self._links):
                values.pop(uuid, None)

    def gpus(self) -> tuple[InstalledGpu, ...]:
        """As they were listed last, also those that are lost."""
        return tuple(self._gpus.values())

    def of(self, uuid: str) -> DeviceHealth:
        lost, gpu = self._lost.get(uuid), self._gpus.get(uuid)
        index = lost.index if lost is not None else gpu.index if gpu is not None else -1
        return DeviceHealth(index, uuid, tuple(self._causes(uuid)))

    def all(self) -> tuple[DeviceHealth, ...]:
        found = [self.of(uuid) for uuid in {**self._gpus, **self._lost}]
        return tuple(sorted(found, key=lambda one: one.index))

    def _causes(self, uuid: str) -> Iterator[HealthCause]:
        lost = self._lost.get(uuid)
        if lost is not None:
            yield HealthCause(
                "lost", f"the GPU does not respond: {lost.reason}", ADVICE["power-cycle"], is_unhealthy=True
            )
        if uuid in self._silent:
            message = "calls of the driver about the GPU do not return"
            yield HealthCause("silent", message, ADVICE["reset"], is_unhealthy=True)
        for one in self._xids.get(uuid, ()):
            fault = xid_of(one.xid)
            yield HealthCause(
                code=f"xid-{one.xid}" + ("" if one.instance is None else f"-instance-{one.instance}"),
                message=f"Xid {one.xid}: {fault.meaning}",
                advice=fault.advice,
                is_unhealthy=self._checks.heeds(one.xid),
                instance=one.instance,
            )
        if lost is None and uuid in self._readings:
            yield from _of_readings(self._readings[uuid])
            yield from self._of_links(uuid)

    def _of_links(self, uuid: str) -> Iterator[HealthCause]:
        gpu, most = self._gpus[uuid], self._links[uuid]
        links = sum(peer.links for peer in gpu.peers)
        # A peer that is lost takes its connections along; that is its fault.
        if links < most and not self._lost:
            message = f"{most - links} of {most} NVLink connections are down"
            yield HealthCause("nvlink-down", message, ADVICE["nvlink"], is_unhealthy=False)


def _unrecovered(one: _Recorded, now: GpuReadings, at_s: float, *, was_lost: bool) -> _Recorded | None:
    """The error with what is known since, None if the GPU has recovered from it."""
    if was_lost:
        return None
    if one.energy_mj is not None and now.energy_mj is not None and now.energy_mj < one.energy_mj:
        return None
    if now.recovery_action is None:
        # Nothing says that the GPU needs a reset, and nothing would say that it had one: only a reload does.
        return one if one.energy_mj is not None or now.energy_mj is None else _with_energy(one, now.energy_mj)
    if now.recovery_action != "none":
        return msgspec.structs.replace(one, was_recommended=True)
    if one.was_recommended or at_s - one.at_s >= _SETTLE_S:
        return None
    return one


def _with_energy(one: _Recorded, energy_mj: int) -> _Recorded:
    return msgspec.structs.replace(one, energy_mj=energy_mj)


def _of_readings(readings: GpuReadings) -> Iterator[HealthCause]:
    action = _RECOVERIES.get(readings.recovery_action or "none")
    if action is not None:
        message = f"the driver recommends: {readings.recovery_action}"
        yield HealthCause("recovery-action", message, ADVICE[action], is_unhealthy=True)
    rows = readings.remapped_rows
    if rows is not None and rows.has_failed:
        yield HealthCause(
            "row-remap-failed", "a row of memory could not be remapped", ADVICE["support"], is_unhealthy=True
        )
    elif rows is not None and rows.is_pending:
        advice = "reset the GPU when it is idle, to activate the remapped row"
        yield HealthCause("row-remap-pending", "a remapped row of memory is not active yet", advice, is_unhealthy=False)
    if readings.ecc is not None and readings.ecc.uncorrected:
        message = f"uncorrected memory errors since the driver was loaded: {readings.ecc.uncorrected}"
        yield HealthCause("ecc-uncorrected", message, ADVICE["reset"], is_unhealthy=False)
    hot = [reason for reason in readings.throttle_reasons or () if reason in _THERMAL]
    if hot:
        at = "" if readings.temperature_c is None else f" at {readings.temperature_c} C"
        advice = "check the cooling of the machine and the temperature of its inlet"
        yield HealthCause("hot", f"clocks are reduced by heat{at}: {', '.join(hot)}", advice, is_unhealthy=False)
