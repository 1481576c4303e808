"""Represents node pools: the nodes that a pool may provision, its limits, and when it may disrupt nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from shoal.api.taints import Taint
from shoal.autoscale.requirements import RequirementSet, only
from shoal.autoscale.requirements.labels import POOL_LABEL
from shoal.autoscale.requirements.requirement_set import requirements_of_labels

NODES_LIMIT: Final = "nodes"
SPEND_LIMIT: Final = "shoal.dev/spend-per-hour"
"""A limit in currency units per hour; amounts are counted in thousandths."""
SPOT_INTERRUPTIONS: Final = "shoal.dev/spot-interruptions-per-hour"
"""An annotation of a pool."""

ConsolidationPolicy = Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"]
DisruptionReason = Literal["Empty", "Underutilized", "Drifted"]


class DisruptionBudget(msgspec.Struct, frozen=True):
    """How many nodes of the pool may be disrupted at a time."""

    nodes: str
    """A number, or a percentage of the initialized nodes."""
    reasons: tuple[DisruptionReason, ...] = ()
    """Empty means every reason."""
    schedule: str = ""
    duration_s: float | None = None


class DisruptionRules(msgspec.Struct, frozen=True):
    """When nodes of the pool may be disrupted."""

    policy: ConsolidationPolicy = "WhenEmptyOrUnderutilized"
    consolidate_after_s: float | None = 0.0
    """How long a node must have been quiet; None means that it is never consolidated."""
    budgets: tuple[DisruptionBudget, ...] = ()


class NodePool(msgspec.Struct, frozen=True):
    """A pool; `requirements` are those of its nodes, without its labels."""

    name: str
    requirements: RequirementSet = RequirementSet()
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    weight: int = 0
    limits: Mapping[str, int] = {}
    replicas: int | None = None
    """The number of nodes of a static pool, which pods do not change."""
    disruption: DisruptionRules = DisruptionRules()
    expire_after_s: float | None = None
    termination_grace_s: float | None = None
    spot_interruptions_per_hour: float | None = None
    """How often a spot node is taken back; None where the cloud or the file of instance types says it."""
    node_class: str = ""
    """The kind of its node class, which tells the cloud."""

    @property
    def is_static(self) -> bool:
        return self.replicas is not None

    def node_requirements(self) -> RequirementSet:
        """What is known of every node of the pool: its requirements and its labels."""
        named = self.requirements.with_all(requirements_of_labels(self.labels))
        return named.with_values(POOL_LABEL, only(self.name))


def by_precedence(pools: Iterable[NodePool]) -> list[NodePool]:
    """The order in which pools are tried: the heaviest first, of equal weights the last name."""
    return sorted(sorted(pools, key=lambda pool: pool.name, reverse=True), key=lambda pool: -pool.weight)
