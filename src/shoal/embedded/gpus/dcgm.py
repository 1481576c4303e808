"""Writes the exposition text of a node's DCGM exporter, for Prometheus.

The rows of an allocated GPU have the pod's name. On a shared GPU every pod has its own rows, which differ in the label
`vgpu`; load and memory also have a row for the whole GPU. A GPU that has fallen off the bus shows only its Xid.

Counters need state, so this is an object: it accumulates the usage of each interval, and is updated before programs
start or end and at every scrape. Energy counts from the node's boot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from shoal.data.gpus import find_model
from shoal.devices.dcgm_fields import FIELDS, Field, Sample, Totals
from shoal.devices.dcgm_text import DeviceUser, Labels, PodName, device_labels, family, fault_labels, pod_labels
from shoal.devices.gpu_slot import GpuSlot
from shoal.devices.mig_instances import Cut
from shoal.devices.readings import Reading
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.driver import DRIVER
from shoal.embedded.gpus.readings import gpu_load, power_w, read_gpu, read_instance

_XID = "DCGM_FI_DEV_XID_ERRORS"
_LINK_LOAD = 0.2
_DOUBLE_BIT, _REMAPPED, _REMAP_FAILED = 48, 63, 64


class DcgmExporter:
    def __init__(self, device_manager: DeviceManager, booted_s: float | None = None) -> None:
        """Without a boot time, the time of the first scrape is used."""
        self._device_manager = device_manager
        self._totals = [Totals() for _ in device_manager.machine.gpus]
        self._seen_xid = [0] * len(self._totals)
        self._last_s = booted_s

    def boot(self, at_s: float) -> None:
        for totals in self._totals:
            totals.energy_mj = totals.link_mb = 0.0
        self._last_s = at_s

    def account(self, at_s: float) -> None:
        """Count the usage of the current programs since the last call."""
        passed = max(at_s - self._last_s, 0.0) if self._last_s is not None else 0.0
        self._last_s = at_s if self._last_s is None else max(at_s, self._last_s)
        for slot in self._device_manager.machine.gpus if passed else ():
            util, totals, model = (
                gpu_load(self._device_manager, slot, at_s),
                self._totals[slot.index],
                find_model(slot.model),
            )
            totals.energy_mj += power_w(model, util) * 1000 * passed
            totals.link_mb += util * (model.link_gb_s if model is not None else 0) * 1000 * _LINK_LOAD * passed

    def text(self, pods: Mapping[str, PodName], at_s: float) -> str:
        """`pods`: by uid; the rows of other pods have no name."""
        self.account(at_s)
        samples = [self.sample(slot, at_s) for slot in self._device_manager.machine.gpus]
        scrape = _Scrape(self._device_manager, pods, at_s)
        lines: list[str] = []
        for field in FIELDS:
            pairs = zip(self._device_manager.machine.gpus, samples, strict=True)
            lines += family(field, (row for slot, sample in pairs for row in scrape.rows(field, slot, sample)))
        return "".join(f"{line}\n" for line in lines)

    def sample(self, slot: GpuSlot, at_s: float) -> Sample:
        """The values of one GPU, with the counters as of the last `account`."""
        reading, totals = read_gpu(self._device_manager, slot, at_s), self._totals[slot.index]
        fault = self._device_manager.xid(slot.index)
        number = fault.number if fault is not None else 0
        if number != self._seen_xid[slot.index]:
            self._seen_xid[slot.index] = number
            totals.double_bit_errors += number == _DOUBLE_BIT
            totals.remapped_rows += number == _REMAPPED
            totals.remap_failures = int(number == _REMAP_FAILED)
        return Sample(reading, totals, number)


class _Scrape:
    """The values that all rows of one scrape share."""

    def __init__(self, device_manager: DeviceManager, pods: Mapping[str, PodName], at_s: float) -> None:
        self._device_manager, self._pods, self._at_s = device_manager, pods, at_s
        found: dict[str, dict[tuple[str, str], DeviceUser]] = {}
        for uid, held in device_manager.held():
            for one in held:
                for device in one.devices:
                    holder = DeviceUser(uid, one.container, device)
                    found.setdefault(device.physical, {}).setdefault((uid, one.container), holder)
        self._holders = {physical: list(holders.values()) for physical, holders in found.items()}

    def rows(self, field: Field, slot: GpuSlot, sample: Sample) -> Iterator[tuple[Labels, float]]:
        """The rows of one GPU: none, one, or one for each instance and each pod."""
        gpu, fault, model = (
            self._device_manager.gpus[slot.index],
            self._device_manager.xid(slot.index),
            find_model(slot.model),
        )
        is_lost = fault is not None and fault.is_lost and field.name != _XID
        is_unlinked = field.needs_link and (model is None or not model.link)
        if is_lost or is_unlinked or (gpu.is_mig and field.scope == "whole"):
            return
        if not gpu.is_mig or field.scope != "instance":
            yield from self._held(field, slot, None, sample)
            return
        for one in gpu.cuts:
            reading = read_instance(self._device_manager, slot, one.uuid, one.memory_mib, self._at_s)
            yield from self._held(field, slot, one, _of(sample, reading))

    def _held(self, field: Field, slot: GpuSlot, one: Cut | None, sample: Sample) -> Iterator[tuple[Labels, float]]:
        """A row for each pod that holds the device, or one without a pod."""
        holders = self._holders.get(slot.uuid if one is None else one.uuid, [])
        labels = device_labels(self._device_manager.machine.name, DRIVER, slot, one)
        extra = fault_labels(self._device_manager.xid(slot.index)) if field.name == _XID else ()
        value = field.value(sample)
        is_split = field.is_per_pod and any(holder.device.replicas > 1 for holder in holders)
        if not holders or is_split:
            yield (*labels, *extra), value
        for holder in holders:
            own = self._own(field, holder, sample) if is_split else value
            yield (*labels, *sorted((*extra, *pod_labels(holder, self._pods)))), own

    def _own(self, field: Field, holder: DeviceUser, sample: Sample) -> float:
        """The pod's share of a value of a shared device."""
        programs, physical = self._device_manager.programs, holder.device.physical
        mine = [one for one in programs.on(physical) if (one.uid, one.container) == (holder.uid, holder.container)]
        util = sum(programs.share(one, physical) for one in mine)
        used = sum(slot.memory_mib for one in mine for slot in one.slots if slot.device.physical == physical)
        return field.value(_of(sample, msgspec.structs.replace(sample.reading, util=util, used_mib=used)))


def _of(sample: Sample, reading: Reading) -> Sample:
    return Sample(reading, sample.totals, sample.xid)
