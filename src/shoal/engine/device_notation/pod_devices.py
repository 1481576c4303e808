"""Determines a pod's request for devices from its resource requests and annotations.

One pod asks in one way: a fraction beside whole GPUs, or memory beside a fraction, are contradictions. Requests are
the pod's effective sums; of virtual GPUs, whose memory is per device, `containers` says who asked for how much.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.engine.device_demand import (
    FULL_MILLI,
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.device_notation import names
from shoal.units.annotation_numbers import fraction_milli, one_of, optional_number, whole_number
from shoal.units.errors import UserError, Where

MOST_GPUS = 1024
"""On one node: sixteen devices, each advertised as sixty-four replicas."""

_HAMI = (names.GPU, names.GPU_MEMORY, names.GPU_MEMORY_PERCENT, names.GPU_CORES)
_VOLCANO = (names.VGPU, names.VGPU_MEMORY, names.VGPU_MEMORY_PERCENT, names.VGPU_CORES)
_VIRTUAL = frozenset({*_HAMI[1:], *_VOLCANO})
_MOST_TILES = 256

Requests = Mapping[str, int]


def devices_of_pod(
    annotations: Mapping[str, str],
    requests: dict[str, int],
    where: Where,
    containers: Sequence[Requests] = (),
    pinned_milli: int = 0,
) -> Demand | None:
    """The demand; what it represents is taken out of `requests`, MIG instances excepted, which are counted by name.

    `where` is the pod, `containers` are the amounts of single containers, `pinned_milli` the cores that the kubelet
    pins for the pod.
    """
    gpus = requests.pop(names.GPU, 0)
    shared = requests.pop(names.GPU_SHARED, 0)
    virtual = {name: requests.pop(name) for name in _VIRTUAL if name in requests}
    tiles = tuple(
        (name.removeprefix(names.MIG_PREFIX), amount)
        for name, amount in sorted(requests.items())
        if name.startswith(names.MIG_PREFIX) and not name.endswith(names.SHARED_SUFFIX) and amount
    )
    asked = {name: amount for name, amount in ((names.GPU, gpus), (names.GPU_SHARED, shared)) if amount}
    _check_counts({**asked, **{names.MIG_PREFIX + name: amount for name, amount in tiles}}, where)
    fraction = _fraction(annotations, where.below("metadata.annotations"))
    if fraction is not None:
        _check_alone(fraction[0], {**asked, **virtual, **{names.MIG_PREFIX + name: n for name, n in tiles}}, where)
        return fraction[1]
    if virtual:
        if shared or tiles:
            other = names.GPU_SHARED if shared else names.MIG_PREFIX + tiles[0][0]
            raise _both(min(virtual), other, where.below("spec.containers"))
        return _virtual(gpus, virtual, containers, where)
    kinds = [name for name, amount in (*asked.items(), *((names.MIG_PREFIX + n, c) for n, c in tiles)) if amount]
    if len({name.startswith(names.MIG_PREFIX) or name for name in kinds}) > 1:
        raise _both(kinds[0], kinds[-1], where.below("spec.containers"))
    if tiles:
        return MigTiles(tiles)
    if shared:
        return Replicas(shared)
    return _whole(gpus, annotations, pinned_milli, where) if gpus else None


def _fraction(annotations: Mapping[str, str], where: Where) -> tuple[str, Demand] | None:
    """KAI's annotations: (the one that was written, what it means)."""
    devices = optional_number(annotations, names.FRACTION_DEVICES, where, least=1)
    by_part, by_memory = names.FRACTION in annotations, names.FRACTION_MEMORY in annotations
    if by_part and by_memory:
        raise _both(names.FRACTION, names.FRACTION_MEMORY, where)
    if not by_part and not by_memory:
        if devices is not None:
            what = f"says on how many devices, but not how much: neither {names.FRACTION} nor {names.FRACTION_MEMORY}"
            raise UserError(what, where=where.key(names.FRACTION_DEVICES))
        return None
    count = devices or 1
    if count > MOST_GPUS:
        raise UserError(f"must be at most {MOST_GPUS}, got {count}", where=where.key(names.FRACTION_DEVICES))
    if by_memory:
        here = where.key(names.FRACTION_MEMORY)
        mib = whole_number(annotations[names.FRACTION_MEMORY], here, least=1)
        return names.FRACTION_MEMORY, MemoryShares(count, mib)
    milli = fraction_milli(annotations[names.FRACTION], where.key(names.FRACTION))
    if milli == FULL_MILLI:
        return names.FRACTION, WholeGpus(count)
    return names.FRACTION, GpuShare(milli) if count == 1 else GpuShares(count, milli)


def _virtual(gpus: int, virtual: Requests, containers: Sequence[Requests], where: Where) -> Demand:
    """HAMi's or Volcano's resources. Amounts are per device, so they are read container by container."""
    spec = where.below("spec.containers")
    volcano = any(name in virtual for name in _VOLCANO)
    if volcano and (gpus or any(name in virtual for name in _HAMI)):
        other = names.GPU if gpus else next(name for name in _HAMI if name in virtual)
        raise _both(next(name for name in _VOLCANO if name in virtual), other, spec)
    resource_names = _VOLCANO if volcano else _HAMI
    askers = [c for c in containers if any(c.get(name) for name in resource_names)] or [
        {resource_names[0]: gpus, **virtual}
    ]
    count = 0
    each: set[tuple[int, int, int]] = set()
    for container in askers:
        number, mib, percent, cores = (container.get(name, 0) for name in resource_names)
        if mib and percent:
            raise _both(resource_names[1], resource_names[2], spec)
        if percent > 100 or cores > 100:
            name = resource_names[2] if percent > 100 else resource_names[3]
            raise UserError(f"must be at most 100, got {max(percent, cores)}", where=spec.key(name))
        count += number or 1
        each.add((mib, percent or 100, cores))
    if len(each) > 1:
        raise UserError(
            f"containers ask for virtual GPUs of different size ({resource_names[1]}, {resource_names[3]})",
            where=spec,
            fix="make them equal, or make them pods of their own",
        )
    _check_counts({resource_names[0]: count}, where)
    (mib, percent, cores), *_ = each
    return VirtualGpus(count, mib, percent, cores)


def _whole(gpus: int, annotations: Mapping[str, str], pinned_milli: int, where: Where) -> WholeGpus:
    here = where.below("metadata.annotations")
    return WholeGpus(
        gpus,
        island=_insists(annotations, names.OWN_ISLAND, here),
        numa=_insists(annotations, names.OWN_NUMA_NODE, here),
        cores_milli=pinned_milli,
    )


def _insists(annotations: Mapping[str, str], name: str, where: Where) -> bool:
    text = annotations.get(name)
    return text is not None and one_of(text, ("required", "preferred"), where.key(name)) == "required"


def _check_alone(annotation: str, others: Requests, where: Where) -> None:
    for name, amount in others.items():
        if amount:
            raise UserError(
                f"contradicts the request of {amount} {name}",
                where=where.below("metadata.annotations").key(annotation),
                fix="ask in one of the two ways",
            )


def _check_counts(counts: Requests, where: Where) -> None:
    for name, count in counts.items():
        most = _MOST_TILES if name.startswith(names.MIG_PREFIX) else MOST_GPUS
        if count > most:
            what = f"{count} of {name}: no node has that many"
            raise UserError(what, where=where.below("spec.containers"), fix=f"at most {most} are read")


def _both(one: str, other: str, where: Where) -> UserError:
    return UserError(f"{one} and {other} contradict each other", where=where, fix="ask in one of the two ways")
