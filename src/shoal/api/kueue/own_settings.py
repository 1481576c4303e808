"""Settings that Shoal adds to Kueue's configuration below `shoal`; Kueue ignores fields that it does not know."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.kueue.durations import seconds
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import UserError, Where

_HERE = Where()


class OwnSettings(ApiStruct, frozen=True):
    placement: Literal["proven", "quotaOnly"] = "proven"
    """Whether a workload is admitted only if its pods can be placed on the nodes that are known."""
    reservations: bool = False
    """The first pending workload gets an earliest start that smaller workloads must not delay."""
    lost_work: bool = False
    """Among equal victims those go first who lose least since they were saved."""
    min_runtime: str = "0"
    """No workload is preempted before it has run this long."""
    respect_budgets: bool = False
    """No workload is preempted if that would violate a disruption budget."""
    gpu_equivalents: Quantities = field(default_factory=dict)
    """How many GPUs a unit of a resource is worth, or a GPU of a model: what `shoal.dev/gpu-milli` counts in."""

    def min_runtime_s(self, where: Where = _HERE) -> float:
        return seconds(self.min_runtime, where.below("minRuntime"))

    def check(self, where: Where) -> None:
        self.min_runtime_s(where)
        for name, worth in self.gpu_equivalents.items():
            if worth.nano < 0:
                raise UserError(f"must be 0 or more, got {worth}", where=where.below("gpuEquivalents").key(name))
