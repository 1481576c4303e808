"""Computes which pods hold a GPU or MIG instance, and the labels that name them, as the DCGM exporter does.

Device ids are those of NVIDIA's device plugin (`GPU-...`, `MIG-...`, `...::REPLICA`) and of GKE's plugin
(`nvidia0/gi1/vgpu0`). A device belongs to the last pod that the kubelet lists for it. With virtual GPUs, which is the
mode for shared devices, it belongs to all of them, and each has rows of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.devices.dcgm_text import Entity
from shoal.devices.device_ids import share_of
from shoal.devices.names import GPU, MIG_PREFIX
from shoal.units.linear_patterns import LinearPattern, PatternError, compile_linear

IdType = Literal["uid", "device-name"]
DRA_DRIVER = "gpu.nvidia.com"
_MIG_UUID, _REPLICA, _GKE_REPLICA = "MIG-", "::", "/vgpu"
_GKE_MIG = re.compile(r"nvidia([0-9]+)/gi([0-9]+)(/vgpu[0-9]+)?")
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]")


class ClaimedDevice(msgspec.Struct, frozen=True):
    """A device of a ResourceClaim."""

    claim: str
    claim_namespace: str
    driver: str
    pool: str
    device: str


class ContainerHolding(msgspec.Struct, frozen=True):
    """The devices of one resource that a container holds, or its devices of claims."""

    pod: str
    namespace: str
    container: str
    resource: str = ""
    device_ids: tuple[str, ...] = ()
    uid: str = ""
    """Of the pod; empty if unknown."""
    labels: Mapping[str, str] = {}
    """Of the pod; empty if unknown."""
    claimed: tuple[ClaimedDevice, ...] = ()


class HolderOptions(msgspec.Struct, frozen=True):
    id_type: IdType = "uid"
    has_virtual_gpus: bool = False
    has_old_names: bool = False
    has_pod_labels: bool = False
    has_pod_uid: bool = False
    allow: tuple[str, ...] = ()
    """Regular expressions for the names of the pod labels to keep; empty: all."""
    resource_names: tuple[str, ...] = ()
    """Resources that are counted as GPUs, besides `nvidia.com/gpu` and `nvidia.com/mig-...`."""


class Holder(msgspec.Struct, frozen=True):
    pod: str
    namespace: str
    container: str
    uid: str = ""
    vgpu: str = ""
    """The number of its replica; empty for a device that is not shared."""
    labels: Mapping[str, str] = {}
    claim: ClaimedDevice | None = None
    mig: ClaimedMig | None = None


class ClaimedMig(msgspec.Struct, frozen=True):
    """A MIG device of a claim. Its pod is shown at the GPU."""

    uuid: str
    profile: str


class PoolDevice(msgspec.Struct, frozen=True):
    """The GPU behind a device of a resource pool."""

    uuid: str
    """Of the GPU; for a MIG device, of the GPU that it is on."""
    mig: ClaimedMig | None = None
    instance: str = ""
    """The number of the GPU and of the GPU instance of a MIG device, as `0-1`; empty if unknown."""


MigDevices = Mapping[str, str]
"""The number of the GPU and of the GPU instance as `0-1`, by the UUID of the MIG device."""
FindDevice = Callable[[str, str], PoolDevice | None]
"""The device by the names of its pool and itself."""


class LabelFilter:
    """Which pod labels become labels of metrics. Patterns that are no regular expressions are left out."""

    def __init__(self, allow: Iterable[str]) -> None:
        self._patterns: list[LinearPattern] = []
        self.wrong: list[str] = []
        for pattern in allow:
            try:
                self._patterns.append(compile_linear(pattern))
            except PatternError:
                self.wrong.append(pattern)

    def keeps(self, label: str) -> bool:
        return not self._patterns or any(pattern.occurs(label) for pattern in self._patterns)


def label_name(label: str) -> str:
    """The name of a pod label in metrics."""
    return _NOT_IN_NAMES.sub("_", label)


def device_key(entity: Entity, id_type: IdType) -> str:
    """How holders of a GPU or MIG instance are found."""
    if entity.profile:
        return f"{entity.gpu}-{entity.instance}"
    return entity.uuid if id_type == "uid" else entity.device


class DeviceHolders:
    """The holders of all devices of a node at one time."""

    def __init__(
        self,
        holdings: Sequence[ContainerHolding],
        options: HolderOptions,
        mig: MigDevices,
        find: FindDevice = lambda *_: None,
    ) -> None:
        """`find`: the GPU of a claimed device; without it, claims are left out."""
        self._options = options
        self._by_key: dict[str, list[Holder]] = {}
        self._claiming: dict[str, list[Holder]] = {}
        label_filter = LabelFilter(options.allow)
        for holding in holdings:
            holder = _holder(holding, options, label_filter)
            if _is_gpu(holding.resource, options.resource_names):
                self._add(holding, holder, mig)
            for claimed in holding.claimed:
                found = find(claimed.pool, claimed.device)
                if found is not None and claimed.driver == DRA_DRIVER:
                    self._claim(holder, claimed, found)

    def of(self, entity: Entity) -> Sequence[Holder]:
        key = device_key(entity, self._options.id_type)
        held = self._by_key.get(key, ())
        if held and not self._options.has_virtual_gpus:
            held = held[-1:]
        return [*held, *self._claiming.get(key, ())]

    def _add(self, holding: ContainerHolding, holder: Holder, mig: MigDevices) -> None:
        for device in holding.device_ids:
            share = share_of(device)
            if share is not None:
                holder = msgspec.structs.replace(holder, vgpu=share)
            shown = holder if self._options.has_virtual_gpus else msgspec.structs.replace(holder, vgpu="")
            for key in _keys(device, mig):
                self._by_key.setdefault(key, []).append(shown)

    def _claim(self, holder: Holder, claimed: ClaimedDevice, found: PoolDevice) -> None:
        own = (holder.namespace, holder.pod, holder.container)
        for key in filter(None, (found.uuid, found.instance)):
            holders = self._claiming.setdefault(key, [])
            if all((other.namespace, other.pod, other.container) != own for other in holders):
                holders.append(msgspec.structs.replace(holder, claim=claimed, mig=found.mig))


def pod_attributes(holder: Holder, options: HolderOptions) -> dict[str, str]:
    names = (
        ("pod_name", "pod_namespace", "container_name") if options.has_old_names else ("pod", "namespace", "container")
    )
    found = dict(zip(names, (holder.pod, holder.namespace, holder.container), strict=True))
    if options.has_pod_uid:
        found["pod_uid"] = holder.uid
    if holder.vgpu:
        found["vgpu"] = holder.vgpu
    if holder.claim is not None:
        found |= {
            "dra_claim_name": holder.claim.claim,
            "dra_claim_namespace": holder.claim.claim_namespace,
            "dra_driver_name": holder.claim.driver,
            "dra_pool_name": holder.claim.pool,
            "dra_device_name": holder.claim.device,
        }
    if holder.mig is not None:
        found |= {"dra_mig_profile": holder.mig.profile, "dra_mig_device_uuid": holder.mig.uuid}
    return found


def with_holder(
    labels: Mapping[str, str], attributes: Mapping[str, str], holder: Holder, options: HolderOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """The labels and attributes of a row that names the holder. With virtual GPUs, pods' labels are left out."""
    own = {**attributes, **pod_attributes(holder, options)}
    added = {} if options.has_virtual_gpus or holder.claim is not None else holder.labels
    return {name: value for name, value in {**labels, **added}.items() if name not in own}, own


def _holder(holding: ContainerHolding, options: HolderOptions, label_filter: LabelFilter) -> Holder:
    labels = {}
    if options.has_pod_labels:
        kept = ((label_name(name), value) for name, value in holding.labels.items() if label_filter.keeps(name))
        # Prometheus accepts no name that starts with a digit.
        labels = {f"_{name}" if name[:1].isdigit() else name: value for name, value in kept}
    return Holder(holding.pod, holding.namespace, holding.container, holding.uid, labels=labels)


def _is_gpu(resource: str, more: Sequence[str]) -> bool:
    return resource == GPU or resource.startswith(MIG_PREFIX) or resource in more


def _keys(device: str, mig: MigDevices) -> list[str]:
    """All that the id may be found by: itself, and the GPU or GPU instance behind it."""
    keys = []
    if device.startswith(_MIG_UUID):
        uuid = device.partition(_REPLICA)[0]
        keys = [mig[uuid]] if uuid in mig else []
        keys.append(uuid.removeprefix(_MIG_UUID))
    elif (found := _GKE_MIG.fullmatch(device)) is not None:
        keys = [f"{found[1]}-{found[2]}"]
    elif _GKE_REPLICA in device:
        keys = [device.partition(_GKE_REPLICA)[0]]
    elif _REPLICA in device:
        keys = [device.partition(_REPLICA)[0]]
    return list(dict.fromkeys([*keys, device]))
