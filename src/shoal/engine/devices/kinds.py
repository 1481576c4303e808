"""How each kind of demand reads a node: what it needs of the summaries, and which grants are legal on the devices.

One entry per kind. `least` is exact for its kind, so the fused record alone decides feasibility; `grants` lists the
legal choices on one node, equal ones once, the lowest device first. Choosing among them is a policy's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

from shoal.engine.devices.demand import FULL_MILLI, Demand, GpuShare, Grant, WholeGpus, compute_grant
from shoal.engine.facts import GPU_BEST, GPU_MILLI, GPU_WHOLE

D_contra = TypeVar("D_contra", contravariant=True)


class DeviceKind(Protocol[D_contra]):
    """What the engine asks of a kind of demand."""

    def least(self, demand: D_contra) -> dict[int, int]:
        """Column of the record -> least amount with which a node can host the demand."""
        ...

    def charged(self, demand: D_contra) -> dict[int, int]:
        """Column of the record -> amount the demand takes, for columns that add up."""
        ...

    def grants(self, free: list[int], demand: D_contra) -> Iterator[Grant]:
        """The legal grants on devices with this much free, first device first, equivalent ones once."""
        ...

    def tightest(self, free: list[int], demand: D_contra) -> Grant | None:
        """The legal grant that leaves least behind on its devices, the lowest device of equals."""
        ...

    def forced(self, free: list[int], demand: D_contra) -> Grant:
        """A grant for a pod that already runs there although nothing fits: the emptiest devices."""
        ...


class _Whole:
    def least(self, demand: WholeGpus) -> dict[int, int]:
        return {GPU_WHOLE: demand.count}

    def charged(self, demand: WholeGpus) -> dict[int, int]:
        return {GPU_MILLI: demand.count * FULL_MILLI}

    def grants(self, free: list[int], demand: WholeGpus) -> Iterator[Grant]:
        grant = self.tightest(free, demand)
        if grant is not None:
            yield grant

    def tightest(self, free: list[int], demand: WholeGpus) -> Grant | None:
        empty = [device for device, left in enumerate(free) if left == FULL_MILLI]
        count = demand.count
        return compute_grant(tuple(empty[:count]), FULL_MILLI) if len(empty) >= count else None

    def forced(self, free: list[int], demand: WholeGpus) -> Grant:
        return compute_grant(_emptiest(free, demand.count), FULL_MILLI)


class _Share:
    def least(self, demand: GpuShare) -> dict[int, int]:
        return {GPU_BEST: demand.milli}

    def charged(self, demand: GpuShare) -> dict[int, int]:
        return {GPU_MILLI: demand.milli}

    def grants(self, free: list[int], demand: GpuShare) -> Iterator[Grant]:
        seen: set[int] = set()
        for device, left in enumerate(free):
            if left >= demand.milli and left not in seen:
                seen.add(left)
                yield compute_grant((device,), demand.milli)

    def tightest(self, free: list[int], demand: GpuShare) -> Grant | None:
        fitting = [left for left in free if left >= demand.milli]
        return compute_grant((free.index(min(fitting)),), demand.milli) if fitting else None

    def forced(self, free: list[int], demand: GpuShare) -> Grant:
        return compute_grant(_emptiest(free, 1), demand.milli)


def _emptiest(free: list[int], count: int) -> tuple[int, ...]:
    order = sorted(range(len(free)), key=lambda device: (-free[device], device))
    return tuple(sorted(order[:count]))


KINDS: dict[type[Demand], DeviceKind[Any]] = {
    WholeGpus: _Whole(),
    GpuShare: _Share(),
}


def kind_of(demand: Demand) -> DeviceKind[Any]:
    return KINDS[type(demand)]
