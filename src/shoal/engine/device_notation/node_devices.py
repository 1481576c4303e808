"""Reads a node's devices from its labels, its annotations and its advertised resources.

GPUs are devices from here on and no longer a counted resource; fixed MIG instances stay counted by name. Shoal's own
inputs (islands, NUMA nodes, MIG on demand) are read from an annotation, else from a label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

from shoal.data.gpus import read_product
from shoal.data.mig import layout_of_product
from shoal.devices.layout import SLOTS_PER_DEVICE, Layout, NumaPolicy, Sharing
from shoal.engine.device_notation import names
from shoal.engine.device_notation.node_ids import NodeIds, gpus_in_mig_mode, node_ids
from shoal.engine.device_notation.pod_devices import MOST_GPUS
from shoal.engine.device_notation.registers import register_of
from shoal.engine.devices.planes import MOST_NUMA
from shoal.units.annotation_numbers import groups, numbers, one_of, optional_number, whole_number
from shoal.units.errors import UserError, Where, excerpt

_DYNAMIC = "dynamic"
_UNHEALTHY = '"unhealthy"'
_LABELS = "metadata.labels"
_ANNOTATIONS = "metadata.annotations"


class NodeDevices(NamedTuple):
    gpus: int
    layout: Layout
    allocatable: dict[str, int]
    """What is left to be counted."""


def layout_of_node(
    labels: Mapping[str, str], annotations: Mapping[str, str], allocatable: Mapping[str, int], where: Where
) -> NodeDevices:
    """The node's devices and what else it has. Amounts are in base units; `where` is the node."""
    left = dict(allocatable)
    plain, shared = left.pop(names.GPU, 0), left.pop(names.GPU_SHARED, 0)
    for name, amount in ((names.GPU, plain), (names.GPU_SHARED, shared)):
        if amount > MOST_GPUS:
            what = f"{amount} of {name}: no node has that many"
            raise UserError(what, where=where.below("status.allocatable"), fix=f"at most {MOST_GPUS} are read")
    renamed = shared > 0 and plain == 0
    replicas, sharing = _sharing(labels, where, renamed=renamed)
    if labels.get(names.REPLICAS) == "0" and (plain or shared):
        replicas, sharing = _sharing_with_mig(node_ids(labels, annotations))
    gpus = (shared if renamed else plain) // replicas
    register = register_of(annotations, left)
    if register is not None:
        gpus, replicas, sharing, renamed = register.gpus, 1, "none", False
    broken: tuple[int, ...] = ()
    if register is None and _UNHEALTHY in annotations.get(names.OWN_TOPOLOGY, ""):
        gpus, broken = _with_broken(node_ids(labels, annotations), gpus)
    settings = _NodeSettings(labels, annotations, where)
    mig, mig_devices = _mig(settings, labels, gpus)
    in_mode = gpus_in_mig_mode(annotations) if mig else None
    if in_mode is not None:
        # Other GPUs that may be divided are whole until the node has changed their mode.
        mig_devices = tuple(device for device in mig_devices if device in in_mode)
        mig = mig if mig_devices else ""
    if mig:
        gpus = max(gpus + len(mig_devices), max(mig_devices, default=-1) + 1)
        left = {name: amount for name, amount in left.items() if not name.startswith(names.MIG_PREFIX)}
    layout = Layout(
        memory_mib=(register.memory_mib if register else 0) or _memory(labels, where),
        replicas=replicas,
        sharing=sharing,
        one_per_request=replicas > 1 and _one_per_request(settings, sharing),
        renamed=renamed,
        slots=register.slots if register else SLOTS_PER_DEVICE,
        islands=_islands(settings, labels, gpus, where),
        numa=_numa(settings, gpus) or (register.numa if register else ()),
        numa_policy=_policy(settings),
        mig=mig,
        is_mig_single=not mig and _is_mig_single(labels, allocatable),
        mig_devices=tuple(device for device in mig_devices if device not in broken),
        broken=broken,
    )
    return NodeDevices(gpus, layout, left)


def _with_broken(ids: NodeIds, gpus: int) -> tuple[int, tuple[int, ...]]:
    """All devices and those that do not work, which a device plugin does not advertise: the others keep their numbers.
    Where the node's words do not agree on how many there are, it is taken by what it advertises."""
    return (len(ids.numbers), ids.broken) if len(ids.numbers) - len(ids.broken) == gpus else (gpus, ())


class _NodeSettings:
    """Shoal's own labels and annotations of a node; annotations take precedence."""

    def __init__(self, labels: Mapping[str, str], annotations: Mapping[str, str], where: Where) -> None:
        self.annotations = annotations
        self._places = ((annotations, where.below(_ANNOTATIONS)), (labels, where.below(_LABELS)))

    def find(self, name: str) -> tuple[str, Where] | None:
        return next(((settings[name], where.key(name)) for settings, where in self._places if name in settings), None)


def _sharing(labels: Mapping[str, str], where: Where, *, renamed: bool) -> tuple[int, Sharing]:
    here = where.below(_LABELS)
    replicas = optional_number(labels, names.REPLICAS, here) or 1
    text = labels.get(names.SHARING) or "none"
    strategy: Sharing = "time-slicing" if text == "time-slicing" else "mps" if text == "mps" else "none"
    if text not in get_args(Sharing):
        one_of(text, get_args(Sharing), here.key(names.SHARING))
    is_shared = strategy != "none" or renamed or read_product(labels.get(names.PRODUCT, "")).is_shared
    if not is_shared:
        return 1, "none"
    return replicas, "time-slicing" if strategy == "none" else strategy


def _sharing_with_mig(ids: NodeIds) -> tuple[int, Sharing]:
    """Feature discovery reports no replicas of GPUs in MIG mode, which the strategy `none` advertises as whole ones."""
    replicas = max(ids.replicas.get(names.GPU, 1), ids.replicas.get(names.GPU_SHARED, 1))
    return (replicas, "time-slicing") if replicas > 1 else (1, "none")


def _one_per_request(settings: _NodeSettings, sharing: Sharing) -> bool:
    """Whether the device plugin fails a request for two: by default with MPS, else only if the node says so."""
    found = settings.find(names.OWN_ONE_PER_REQUEST)
    if found is None:
        return sharing == "mps"
    return one_of(found[0], ("true", "false"), found[1]) == "true"


def _memory(labels: Mapping[str, str], where: Where) -> int:
    reported = optional_number(labels, names.MEMORY_MIB, where.below(_LABELS))
    if reported:
        return reported
    product = read_product(labels.get(names.PRODUCT, ""))
    if product.model is None:
        return 0
    if product.mig_profile:
        layout = product.model.mig_layout()
        profile = layout.profile(product.mig_profile) if layout is not None else None
        return (profile.memory_mib or 0) if profile is not None else 0
    return product.model.memory_mib()


def _is_mig_single(labels: Mapping[str, str], allocatable: Mapping[str, int]) -> bool:
    """The strategy label alone is no sign: it is on every node of a cluster."""
    if labels.get(names.MIG_STRATEGY) != "single":
        return False
    has_role = labels.get(names.MIG_ROLE, "false") == "true"
    has_instances = any(name.startswith(names.MIG_PREFIX) for name in allocatable)
    return has_role or has_instances or bool(read_product(labels.get(names.PRODUCT, "")).mig_profile)


def _mig(settings: _NodeSettings, labels: Mapping[str, str], gpus: int) -> tuple[str, tuple[int, ...]]:
    """The layout by which devices are cut on demand, and which devices."""
    found = settings.find(names.OWN_MIG_LAYOUT)
    if found is None:
        return "", ()
    one_of(found[0], (_DYNAMIC,), found[1])
    product = labels.get(names.PRODUCT, "")
    layout = layout_of_product(read_product(product).name)
    if layout is None:
        raise UserError(
            f"the GPU model {excerpt(product)} is not known to have MIG",
            where=found[1],
            fix=f"set the label {names.PRODUCT} to a product that has",
        )
    listed = settings.find(names.OWN_MIG_DEVICES)
    total = labels.get(names.COUNT)
    count = whole_number(total, found[1].with_path(f"{_LABELS}[{names.COUNT}]"), most=MOST_GPUS) if total else gpus
    if listed is None and count == 0:
        raise UserError("the number of divided GPUs is not given", where=found[1], fix=f"set {names.OWN_MIG_DEVICES}")
    devices = numbers(*listed) if listed is not None else tuple(range(count))
    if gpus_in_mig_mode(settings.annotations) is None and (total or listed is None):
        # GPUs that are advertised as whole ones are whole until the node has changed their mode. A node that does not
        # report its GPUs does not tell which: the last ones are taken to be divided.
        devices = devices[max(len(devices) - max(count - gpus, 0), 0) :]
    return layout.name if devices else "", devices


def _islands(settings: _NodeSettings, labels: Mapping[str, str], gpus: int, where: Where) -> tuple[int, ...]:
    found = settings.find(names.OWN_ISLANDS)
    if found is not None:
        return groups(*found)
    here = where.below(_LABELS)
    size = optional_number(labels, names.ISLAND_SIZE, here, least=1)
    linked = labels.get(names.NVLINK)
    if linked == "false":
        return tuple(range(gpus))
    if size is not None:
        return tuple(device // size for device in range(gpus))
    return (0,) * gpus if linked == "true" else ()


def _numa(settings: _NodeSettings, gpus: int) -> tuple[int, ...]:
    found = settings.find(names.OWN_NUMA)
    if found is None:
        return ()
    nodes = groups(*found)[:gpus]
    if max(nodes, default=0) >= MOST_NUMA:
        raise UserError(f"more than {MOST_NUMA} NUMA nodes", where=found[1])
    return nodes


def _policy(settings: _NodeSettings) -> NumaPolicy:
    found = settings.find(names.OWN_NUMA_POLICY)
    if found is None:
        return "none"
    text = one_of(found[0], get_args(NumaPolicy), found[1])
    return next(policy for policy in _POLICIES if policy == text)


_POLICIES: tuple[NumaPolicy, ...] = ("none", "best-effort", "restricted", "single-numa-node")
