"""Writes the metrics of all GPUs of a node as the DCGM exporter does, from what the driver and the kubelet reported.

Each GPU and each MIG instance has one row per metric and per pod that holds it, or one row without a pod. Metrics of
load and memory of a shared GPU have one row for the GPU and one for each pod with the pod's part. A GPU without
readings has only its Xid errors, so that its last values are not shown as if they were current.

The labels of a row are written once for all metrics of a scrape, because a node with MIG has some hundred rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from shoal.devices.dcgm_fields import USED, UTIL, Field, Number, Values, field_of, is_xid, label_values
from shoal.devices.dcgm_holders import DeviceHolders, Holder, HolderOptions, MigDevices, with_holder
from shoal.devices.dcgm_jobs import JOB_LABEL, Jobs, jobs_on
from shoal.devices.dcgm_selection import CLOCK_EVENTS, P2P_STATUS, XID_COUNT, SelectedMetric, Selection
from shoal.devices.dcgm_text import Entity, LabelNames, entity_labels, family, ordered, spelled
from shoal.devices.port import LINK_STATUSES, GpuReadings, InstalledGpu, MigInstance
from shoal.devices.xids import xid_of

_PER_POD = frozenset({UTIL, USED})
_NO_ERROR = "No Error"


class PodUse(msgspec.Struct, frozen=True):
    """The part of a shared GPU or MIG instance that one pod uses."""

    util_percent: int | None = None
    used_mib: int | None = None


class PodUses(msgspec.Struct, frozen=True):
    parts: Mapping[tuple[str, str, str], PodUse]
    """By device (the UUID of the GPU or MIG device), namespace and name of the pod."""
    is_complete: bool = True
    """Whether the pod of each process is known, so that other pods use nothing."""


class GpuState(msgspec.Struct, frozen=True):
    """A GPU with what is known of it."""

    gpu: InstalledGpu
    readings: GpuReadings | None
    """None: it does not respond."""
    xid: int = 0
    """The last Xid error; 0: none."""
    xid_counts: Mapping[int, int] = {}
    """How often each Xid error occurred in the window."""
    clock_events: Mapping[str, int] = {}
    """How often the clocks were found to be reduced in the window, by reason."""
    uses: PodUses | None = None
    """None: the processes are unknown."""


class NodeNames(msgspec.Struct, frozen=True):
    """What all rows of a node share."""

    hostname: str
    """Empty: without the label."""
    driver: str
    labels: LabelNames = LabelNames()
    has_dashes: bool = False
    """Whether blanks in the names of GPU models are written as dashes."""
    xid_window_ms: int = 300_000
    clock_window_ms: int = 300_000


class _Row(msgspec.Struct, frozen=True):
    entity: str
    """The labels of the GPU or instance, written."""
    labels: Mapping[str, str]
    attributes: Mapping[str, str]
    text: str
    """All labels, written."""
    holder: Holder | None = None


class _DeviceRows(msgspec.Struct, frozen=True):
    """A GPU or a MIG instance with the rows that each of its metrics has."""

    state: GpuState
    uuid: str
    values: Values | None
    rows: Sequence[_Row]
    whole: _Row
    """Its row without a pod."""

    @property
    def is_shared(self) -> bool:
        return any(row.holder is not None and row.holder.vgpu for row in self.rows)


class Exposition:
    """One scrape."""

    def __init__(
        self,
        states: Sequence[GpuState],
        holders: DeviceHolders,
        options: HolderOptions,
        names: NodeNames,
        selection: Selection,
        jobs: Jobs | None = None,
    ) -> None:
        self._holders, self._options, self._names, self._selection = holders, options, names, selection
        self._jobs = jobs or {}
        self._gpus = [self._whole(state) for state in states]
        self._instances = [found for state in states for found in self._cut(state)]

    def lines(self) -> list[str]:
        lines: list[str] = []
        for counter in self._selection.counters:
            if counter.type != "label":
                lines += self._family(counter, self._rows(counter.field))
        for counter in self._selection.exporter_counters:
            rows = self._peers() if counter.field == P2P_STATUS else self._counted(counter.field)
            lines += self._family(counter, rows)
        return lines

    def _family(self, counter: SelectedMetric, rows: Iterator[tuple[str, Number]]) -> list[str]:
        found = list(rows)
        return family(counter.field, counter.type, counter.help, found) if found else []

    def _rows(self, name: str) -> Iterator[tuple[str, Number]]:
        field = field_of(name)
        if is_xid(name):
            yield from self._xids()
        elif field is not None:
            for device in self._shown(field):
                value = None if device.values is None else field.value(device.values)
                if value is None:
                    continue
                uses = device.state.uses
                if field.counter.field in _PER_POD and uses is not None and device.is_shared:
                    yield from _parts(device, uses, value, field.counter.field)
                else:
                    for row in device.rows:
                        yield row.text, value

    def _shown(self, field: Field) -> Iterator[_DeviceRows]:
        for device in self._gpus:
            if not device.state.gpu.is_mig or field.scope == "gpu":
                yield device
        if field.scope == "instance":
            yield from self._instances

    def _xids(self) -> Iterator[tuple[str, Number]]:
        for device in self._gpus:
            xid = device.state.xid
            error = {"err_code": str(xid), "err_msg": xid_of(xid).meaning if xid else _NO_ERROR}
            for row in device.rows:
                yield _spelled(row, {}, error), xid

    def _counted(self, name: str) -> Iterator[tuple[str, Number]]:
        if name not in (XID_COUNT, CLOCK_EVENTS):
            return
        is_xid = name == XID_COUNT
        window = self._names.xid_window_ms if is_xid else self._names.clock_window_ms
        for device in self._gpus:
            own = {"window_size_in_ms": str(window)}
            counts: Mapping[int, int] | Mapping[str, int]
            counts = device.state.xid_counts if is_xid else device.state.clock_events
            for row in device.rows:
                if not counts:
                    yield _spelled(row, own, {}), 0
                for what, count in sorted(counts.items()):
                    label = {"xid" if is_xid else "clock_event": str(what)}
                    yield _spelled(row, {**own, **label}, {}), count

    def _peers(self) -> Iterator[tuple[str, Number]]:
        """The status of NVLink towards each other GPU, as the driver's number for it."""
        for device in self._gpus:
            if device.state.readings is None:
                continue
            for peer in device.state.gpu.nvlink_statuses:
                own = {"peer_gpu": str(peer.index), "link_status": peer.status}
                for row in device.rows:
                    yield _spelled(row, own, {}), LINK_STATUSES.index(peer.status)

    # The rows of a device.

    def _whole(self, state: GpuState) -> _DeviceRows:
        return self._device(state, state.gpu.uuid, state.readings, None)

    def _cut(self, state: GpuState) -> Iterator[_DeviceRows]:
        read = {} if state.readings is None else {one.uuid: one for one in state.readings.instances}
        for instance in state.gpu.instances if state.gpu.is_mig else ():
            yield self._device(state, instance.uuid, read.get(instance.uuid), instance)

    def _device(self, state: GpuState, uuid: str, values: Values | None, instance: MigInstance | None) -> _DeviceRows:
        gpu = state.gpu
        entity = entity_of(gpu, instance, self._names)
        own = spelled(entity_labels(entity, "gpu", self._names.labels))
        labels = label_values(self._selection, gpu, self._names.driver)
        whole = _row(own, labels, {})
        rows = [
            _row(own, *with_holder(labels, {}, holder, self._options), holder) for holder in self._holders.of(entity)
        ]
        jobs = jobs_on(entity, self._jobs)
        if jobs:
            rows = [
                _row(own, row.labels, {**row.attributes, JOB_LABEL: job}, row.holder)
                for row in rows or [whole]
                for job in jobs
            ]
        return _DeviceRows(state, uuid, values, rows or [whole], whole)


def entity_of(gpu: InstalledGpu, instance: MigInstance | None, names: NodeNames) -> Entity:
    """A GPU, or one of its MIG devices."""
    return Entity(
        gpu=str(gpu.index),
        uuid=gpu.uuid,
        pci=gpu.pci,
        device=f"nvidia{gpu.index}",
        model="-".join(gpu.name.split()) if names.has_dashes else gpu.name,
        profile=instance.profile if instance is not None else "",
        instance=str(instance.instance) if instance is not None and instance.instance is not None else "",
        hostname=names.hostname,
    )


def mig_devices(gpus: Iterable[InstalledGpu]) -> MigDevices:
    """How the holders of each MIG device are found."""
    return {one.uuid: f"{gpu.index}-{one.instance}" for gpu in gpus for one in gpu.instances}


def _row(entity: str, labels: Mapping[str, str], attributes: Mapping[str, str], holder: Holder | None = None) -> _Row:
    return _Row(entity, labels, attributes, _joined(entity, spelled(ordered(labels, attributes))), holder)


def _spelled(row: _Row, labels: Mapping[str, str], attributes: Mapping[str, str]) -> str:
    return _joined(row.entity, spelled(ordered({**row.labels, **labels}, {**row.attributes, **attributes})))


def _joined(entity: str, more: str) -> str:
    return f"{entity},{more}" if more else entity


def _parts(device: _DeviceRows, uses: PodUses, value: Number, name: str) -> Iterator[tuple[str, Number]]:
    """The value of a shared device, and the known part of each pod."""
    yield device.whole.text, value
    others = PodUse(0, 0) if uses.is_complete else PodUse()
    for row in device.rows:
        if row.holder is None:
            continue
        use = uses.parts.get((device.uuid, row.holder.namespace, row.holder.pod), others)
        part = use.util_percent if name == UTIL else use.used_mib
        if part is not None:
            yield row.text, part
