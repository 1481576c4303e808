"""KAI's PodGroup: a gang, or a tree of them, each part with its own minimum and its own place in a topology.

Subgroups name their parent; those without one hang from the group itself. A subgroup whose parent is not
there, or that is its own ancestor, belongs to no tree and is refused, as is a minimum of parts above the
number of parts.

Rejected: nesting the subgroups on reading. The flat list is what the object says and what people see, and
`children` gives the tree.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

GROUP_ANNOTATION = "pod-group-name"
"""On a pod: the PodGroup of its namespace that it belongs to."""

STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"
"""On a PodGroup: since when fewer of its pods run than it needs."""

SUB_GROUP_LABEL = "kai.scheduler/subgroup-name"
QUEUE_LABEL = "kai.scheduler/queue"
NODE_POOL_LABEL = "kai.scheduler/node-pool"
"""On nodes, queues, PodGroups and pods: the pool to which they belong; without it to the one of unlabelled nodes."""

USAGE_ANNOTATION = "shoal.dev/queue-usage"
"""On a SchedulingShard: what its queues used in the window of time-based fair shares."""

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]

# Labels write these words with a dash, the API's constants without.
_PREEMPTIBLE = {"preemptible": True, "nonpreemptible": False}


class TopologyConstraint(ApiStruct, frozen=True):
    """Levels are node labels of the named Topology."""

    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""

    def check(self, where: Where) -> None:
        if (self.required_topology_level or self.preferred_topology_level) and not self.topology:
            raise UserError("is required to find the level", where=where.below("topology"))


class SubGroup(ApiStruct, frozen=True):
    name: str
    parent: str = ""
    min_member: Count | None = None
    min_sub_group: Count | None = None
    topology_constraint: TopologyConstraint | None = None


class KaiPodGroupSpec(ApiStruct, frozen=True):
    min_member: Count | None = None
    min_sub_group: Count | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: TopologyConstraint | None = None
    sub_groups: tuple[SubGroup, ...] = ()
    mark_unschedulable: bool = False
    scheduling_backoff: int | None = None

    def children(self, parent: str = "") -> tuple[SubGroup, ...]:
        return tuple(group for group in self.sub_groups if group.parent == parent)

    def is_preemptible(self) -> bool | None:
        """What the group says of itself; None leaves it to its priority."""
        return _PREEMPTIBLE.get(_plain(self.preemptibility))


class KaiPodGroup(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: KaiPodGroupSpec = field(default_factory=KaiPodGroupSpec)


def check_kai_pod_group(group: KaiPodGroup, where: Where) -> None:
    check_meta(group.metadata, where.below("metadata"))
    spec, where = group.spec, where.below("spec")
    if spec.preemptibility and spec.is_preemptible() is None:
        raise UserError(
            f"unsupported value {excerpt(spec.preemptibility)}",
            where=where.below("preemptibility"),
            fix="supported values are preemptible, non-preemptible",
        )
    if spec.topology_constraint is not None:
        spec.topology_constraint.check(where.below("topologyConstraint"))
    _check_names(spec.sub_groups, where)
    _check_tree(spec.sub_groups, where)
    counts: dict[str, int] = {}
    for part in spec.sub_groups:
        counts[part.parent] = counts.get(part.parent, 0) + 1
    _check_minimum(spec.min_sub_group, counts.get("", 0), where)
    for index, part in enumerate(spec.sub_groups):
        here = where.below(f"subGroups[{index}]")
        _check_minimum(part.min_sub_group, counts.get(part.name, 0), here)
        if part.topology_constraint is not None:
            part.topology_constraint.check(here.below("topologyConstraint"))


def _plain(word: str) -> str:
    return word.lower().replace("-", "")


def _check_names(parts: tuple[SubGroup, ...], where: Where) -> None:
    names: set[str] = set()
    for index, part in enumerate(parts):
        here = where.below(f"subGroups[{index}].name")
        if not part.name:
            raise UserError("is required", where=here)
        if part.name in names:
            raise UserError(f"{excerpt(part.name)} is named twice", where=here)
        names.add(part.name)


def _check_tree(parts: tuple[SubGroup, ...], where: Where) -> None:
    parents = {part.name: part.parent for part in parts}
    rooted = {""}
    for index, part in enumerate(parts):
        here = where.below(f"subGroups[{index}].parent")
        path: list[str] = []
        name = part.name
        while name not in rooted:
            if name not in parents:
                raise UserError(f"{excerpt(name)} is not one of the subGroups", where=here)
            if name in path:
                raise UserError(f"{excerpt(name)} would be its own ancestor", where=here)
            path.append(name)
            name = parents[name]
        rooted.update(path)


def _check_minimum(minimum: int | None, parts: int, where: Where) -> None:
    if minimum is not None and minimum > parts:
        what = f"must be at most {parts}, the number of subgroups directly below, got {minimum}"
        raise UserError(what, where=where.below("minSubGroup"))
