"""Reads a pod as rows of the ledger: what it holds of its node, and how long it waited.

Moments come from the pod where it has them (when it was bound, when its containers ran and ended), so a recorder that
was away finds what it missed; else they are those at which the recorder saw the change. Devices are those that the
kubelet reports, else those that the scheduler wrote, else any that are free on the node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from shoal.api.checkpoint_annotations import tells_checkpoints
from shoal.api.conditions import Condition, find_condition
from shoal.api.cost_budgets import queue_label, team_of
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodClaimStatus, PodSpec
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.resources import effective_requests
from shoal.api.wire import ApiStruct, Timestamp, dec_hook
from shoal.client.item import Item
from shoal.cost.device_shares import limited_share
from shoal.cost.records import FULL_SHARE, DeviceShare, Holder, Holding, Wait
from shoal.devices.device_ids import ids_in
from shoal.devices.names import GPU, OWN_DEVICES
from shoal.engine.device_demand import (
    FULL_MILLI,
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    VirtualGpus,
    WholeGpus,
    demand_per_device,
)
from shoal.engine.device_notation import devices_of_pod
from shoal.engine.from_api.membership import group_of
from shoal.store.history.node_rows import NodeDeviceNames
from shoal.units.errors import UserError, Where
from shoal.units.numbers import whole_of

_NOISE = ("pod-template-hash", "controller-uid", "controller-revision-hash", "batch.kubernetes.io/", "job-name")
_MOST_LABELS = 24
_NVIDIA = "nvidia.com/"
_MIB = 1 << 20
_MOST_AMOUNT = 1 << 53
_SLICES = 8
"""A MIG instance is compared with free parts of devices as so many slices of eight."""
_PREEMPTION = "PreemptionByScheduler"
_Limited = GpuShare | GpuShares | MemoryShares | VirtualGpus
SYSTEM_NAMESPACES = frozenset(
    {
        *("kube-system", "kube-node-lease", "shoal-system"),
        *("gpu-operator", "nvidia-gpu-operator", "nvidia-device-plugin"),
    }
)
"""Of the software of the cluster, in which tenants create no pods."""


class _DeviceName(ApiStruct, frozen=True):
    id: str = msgspec.field(default="", name="resourceID")


class _AllocatedResource(ApiStruct, frozen=True):
    name: str = ""
    resources: tuple[_DeviceName, ...] = ()


class _Moments(ApiStruct, frozen=True):
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None


class _RunState(ApiStruct, frozen=True):
    running: _Moments | None = None
    terminated: _Moments | None = None


class _RunStatus(ApiStruct, frozen=True):
    name: str = ""
    state: _RunState = _RunState()
    allocated_resources_status: tuple[_AllocatedResource, ...] = ()


class _RecordedStatus(ApiStruct, frozen=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    start_time: Timestamp | None = None
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    container_statuses: tuple[_RunStatus, ...] = ()
    init_container_statuses: tuple[_RunStatus, ...] = ()


class RecordedPod(ApiStruct, frozen=True):
    metadata: ObjectMeta
    spec: PodSpec
    status: _RecordedStatus = _RecordedStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in TERMINAL_PHASES

    def claims(self) -> list[str]:
        """The names of its ResourceClaims."""
        made = {one.name: one.resource_claim_name for one in self.status.resource_claim_statuses}
        names = (one.resource_claim_name or made.get(one.name, "") for one in self.spec.resource_claims)
        return [name for name in names if name]

    def requests(self) -> dict[str, int]:
        """Bounded: anyone may request exabytes, which no row can hold."""
        return {name: min(amount, _MOST_AMOUNT) for name, amount in effective_requests(self.spec).items()}


_decoder = msgspec.json.Decoder(RecordedPod, dec_hook=dec_hook)


def read_pod(item: Item) -> RecordedPod:
    """Raises msgspec.DecodeError for an object that is no pod."""
    return _decoder.decode(item.data)


def holder_of(pod: RecordedPod, namespace_labels: Mapping[str, str], teams: Collection[str] = ()) -> Holder:
    """`teams`: those of namespaces, which pods cannot name."""
    meta = pod.metadata
    owner = meta.controller()
    job, kind = ("", "") if owner is None else (owner.name, owner.kind)
    if kind == "ReplicaSet" and (suffix := meta.labels.get("pod-template-hash")):
        job, kind = job.removesuffix(f"-{suffix}"), "Deployment"
    labels = [(key, value) for key, value in sorted(meta.labels.items()) if not key.startswith(_NOISE)]
    is_daemon = owner is not None and owner.kind in ("DaemonSet", "Node")
    return Holder(
        pod=meta.name,
        namespace=meta.namespace,
        job=job,
        gang=group_key(pod).partition("/")[2],
        queue=queue_label(pod.spec.scheduler_name, meta.labels),
        team=team_of(namespace_labels, meta.labels, meta.namespace, teams),
        labels=tuple(labels[:_MOST_LABELS]),
        is_overhead=meta.namespace in SYSTEM_NAMESPACES or (is_daemon and not _has_devices(pod)),
        owner_kind=kind,
    )


def holding_of(
    pod: RecordedPod, holder: Holder, names: NodeDeviceNames, taken: Mapping[str, int], now_ms: int
) -> Holding | None:
    """What it holds; None before it is bound. `taken`: the shares of the node's devices that other pods hold."""
    if not pod.spec.node_name:
        return None
    requests = pod.requests()
    start = _bound_ms(pod) or now_ms
    running = _running_ms(pod)
    end = max(start, _ended_ms(pod) or now_ms) if pod.is_finished else None
    devices = _devices(pod, names, requests, taken)
    if devices and holder.is_overhead and holder.namespace not in SYSTEM_NAMESPACES:
        holder = msgspec.structs.replace(holder, is_overhead=False)
    if not holder.tells_checkpoints and tells_checkpoints(pod.metadata.annotations):
        # Written by the program as well, when it has saved its work first.
        holder = msgspec.structs.replace(holder, tells_checkpoints=True)
    return Holding(
        holder=holder,
        machine=pod.spec.node_name,
        start_ms=start,
        running_ms=None if running is None else max(start, running),
        end_ms=end,
        devices=devices,
        cpu_milli=requests.get("cpu", 0),
        memory_mib=requests.get("memory", 0) // _MIB,
        is_preempted=_is_preempted(pod),
    )


def wait_of(pod: RecordedPod, holder: Holder, now_ms: int) -> Wait | None:
    """None for a pod that asks for no GPUs."""
    requests = pod.requests()
    devices, milli = _asked(pod, requests)
    if not devices:
        return None
    is_whole = milli >= FULL_MILLI
    scheduled = find_condition(pod.status.conditions, "PodScheduled")
    start = _ms(pod.metadata.creation_timestamp) or now_ms
    end = None
    if pod.spec.node_name:
        end = max(start, _bound_ms(pod) or now_ms)
    elif pod.is_finished:
        end = now_ms
    return Wait(
        holder=holder,
        start_ms=start,
        end_ms=end,
        gpus=devices if is_whole else 0,
        share=0 if is_whole else FULL_SHARE * milli // FULL_MILLI,
        cpu_milli=requests.get("cpu", 0),
        memory_mib=requests.get("memory", 0) // _MIB,
        reason=scheduled.reason if scheduled is not None and not scheduled.is_true() else "",
    )


def same_but_ended(row: Holding, now_ms: int, *, is_preempted: bool = False) -> Holding:
    """Its pod is gone."""
    end = row.end_ms if row.end_ms is not None else max(row.start_ms, now_ms)
    return msgspec.structs.replace(row, end_ms=end, is_preempted=row.is_preempted or is_preempted)


def merged(before: Holding | None, now: Holding) -> Holding:
    """What is known already stays: a container that restarts does not load its model for the first time."""
    if before is None:
        return now
    return msgspec.structs.replace(
        now,
        start_ms=before.start_ms,
        running_ms=now.running_ms if before.running_ms is None else before.running_ms,
        end_ms=before.end_ms if before.end_ms is not None else now.end_ms,
        devices=_reported_or(before.devices, now.devices),
        borrowed_ppm=before.borrowed_ppm,
        uses=(),
    )


def _reported_or(before: Sequence[DeviceShare], now: Sequence[DeviceShare]) -> tuple[DeviceShare, ...]:
    """The kubelet's report replaces what was assumed before it; without one, what was known stays."""
    return tuple(now or before)


def _devices(
    pod: RecordedPod, names: NodeDeviceNames, requests: Mapping[str, int], taken: Mapping[str, int]
) -> tuple[DeviceShare, ...]:
    reported = _reported(pod)
    if not reported:
        written = ids_in(pod.metadata.annotations.get(OWN_DEVICES, ""))
        reported = [(name, device) for of in written.values() for name, ids in of.items() for device in ids]
    found = [share for name, device in dict.fromkeys(reported) if (share := names.share(name, device)) is not None]
    if found:
        limit = _limit(_demand(pod, requests), names.memory_mib)
        return tuple(_limited(one, limit) for one in found)
    return _free_devices(pod, names, requests, taken)


def _reported(pod: RecordedPod) -> list[tuple[str, str]]:
    status = pod.status
    return [
        (entry.name, device.id)
        for container in (*status.container_statuses, *status.init_container_statuses)
        for entry in container.allocated_resources_status
        if entry.name.startswith(_NVIDIA)
        for device in entry.resources
    ]


def _free_devices(
    pod: RecordedPod, names: NodeDeviceNames, requests: Mapping[str, int], taken: Mapping[str, int]
) -> tuple[DeviceShare, ...]:
    """The least free devices that have the share, so that whole ones stay whole; one share of each."""
    count, milli = _asked(pod, requests)
    if not count:
        return ()
    demand = _demand(pod, requests)
    is_limited = isinstance(demand, _Limited)
    share = _limit(demand, names.memory_mib) if is_limited else FULL_SHARE * min(milli, FULL_MILLI) // FULL_MILLI
    if milli >= FULL_MILLI and (replicas := names.replicas.get(GPU, 1)) > 1:
        share = FULL_SHARE // replicas
    free = [(FULL_SHARE - taken.get(device, 0), at, device) for at, device in enumerate(names.devices)]
    fitting = sorted(one for one in free if one[0] >= share)
    return tuple(DeviceShare(device, share) for _, _, device in fitting[:count])


def _demand(pod: RecordedPod, requests: Mapping[str, int]) -> Demand | None:
    try:
        return devices_of_pod(pod.metadata.annotations, dict(requests), Where())
    except UserError:
        return WholeGpus(requests.get(GPU, 0))


def _asked(pod: RecordedPod, requests: Mapping[str, int]) -> tuple[int, int]:
    demand = _demand(pod, requests)
    if isinstance(demand, MigTiles):
        compute = [whole_of(profile.partition("g.")[0]) or 1 for profile, _ in demand.tiles]
        return sum(count for _, count in demand.tiles), FULL_MILLI * min(compute) // _SLICES
    return demand_per_device(demand)


def _has_devices(pod: RecordedPod) -> bool:
    """Whether it asks for devices in any way, or was given some."""
    requests = pod.requests()
    is_asked = any(count and name.startswith(_NVIDIA) for name, count in requests.items())
    is_given = OWN_DEVICES in pod.metadata.annotations or bool(_reported(pod))
    return is_asked or is_given or bool(pod.spec.resource_claims) or _asked(pod, requests)[0] > 0


def _limit(demand: Demand | None, device_mib: int) -> int:
    """The share of each device that the pod limits itself to: the larger one of its compute and its memory."""
    match demand:
        case GpuShare(milli) | GpuShares(_, milli):
            return FULL_SHARE * milli // FULL_MILLI
        case MemoryShares(_, mib):
            return limited_share(0, mib, device_mib)
        case VirtualGpus(_, 0, percent, cores):
            return limited_share(cores, percent, 100)
        case VirtualGpus(_, mib, _, cores):
            return limited_share(cores, mib, device_mib)
        case _:
            return FULL_SHARE


def _limited(one: DeviceShare, limit: int) -> DeviceShare:
    if limit >= one.share:
        return one
    return DeviceShare(one.device, limit, one.part, one.compute * limit // one.share)


def group_key(pod: RecordedPod) -> str:
    """Of its gang, as namespace/name; empty for a pod of none."""
    try:
        return group_of(Pod(metadata=pod.metadata, spec=pod.spec), Where())
    except UserError:
        return ""


def _is_preempted(pod: RecordedPod) -> bool:
    found = find_condition(pod.status.conditions, "DisruptionTarget")
    return found is not None and found.is_true() and found.reason == _PREEMPTION


def _bound_ms(pod: RecordedPod) -> int | None:
    scheduled = find_condition(pod.status.conditions, "PodScheduled")
    if scheduled is not None and scheduled.is_true() and scheduled.last_transition_time is not None:
        return _ms(scheduled.last_transition_time)
    return _ms(pod.status.start_time)


def _running_ms(pod: RecordedPod) -> int | None:
    """When it was ready first, as far as the pod says."""
    ready = find_condition(pod.status.conditions, "Ready")
    if ready is not None and ready.is_true():
        return _ms(ready.last_transition_time)
    if pod.is_finished:
        states = (one.state.terminated for one in pod.status.container_statuses)
        return _latest(one.started_at for one in states if one is not None)
    return None


def _ended_ms(pod: RecordedPod) -> int | None:
    states = (one.state.terminated for one in pod.status.container_statuses)
    return _latest(one.finished_at for one in states if one is not None)


def _latest(moments: Iterable[datetime | None]) -> int | None:
    return max((found for one in moments if (found := _ms(one)) is not None), default=None)


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
