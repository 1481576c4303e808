"""Represents a gang: how many members must run for any to run, its subgroups, and how close together they must be.

A gang is a tree. A leaf counts pods, an inner part counts the parts below it that have what they need; the gang itself
is the root. A gang without parts is a root that counts pods. Roles cut the same pods another way and have minima of
their own. Every ecosystem's group (Volcano, KAI, scheduler-plugins, upstream) is read into this one shape.
"""

from __future__ import annotations

import msgspec


class TopologyRequirement(msgspec.Struct, frozen=True):
    """How close together pods should be, in levels of one topology."""

    topology: str = ""
    """Name of the topology with these levels; if empty, each level is the key of a node label, without a topology."""
    required: str = ""
    """Level: all in one domain of it, or not at all."""
    preferred: str = ""
    """Level: all in one domain of it if possible, else in as few as possible."""
    closest: bool = False
    """Of the levels from `required` inwards, the innermost at which all fit into one domain. Without a required level:
    of all levels, and where no domain is large enough, anywhere."""
    slice_level: str = ""
    """Level: every slice in one domain of it."""
    slice_size: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.required or self.preferred or self.closest or self.slice_level)


class GangSubgroup(msgspec.Struct, frozen=True):
    """A subgroup of a gang."""

    name: str
    parent: str = ""
    """The part it belongs to; empty: the gang itself."""
    minimum: int = 0
    """Pods of a leaf that must run, or parts directly below an inner part that must have what they need."""
    requirement: TopologyRequirement = TopologyRequirement()


class GroupFacts(msgspec.Struct, frozen=True):
    """A gang as its object describes it."""

    name: str
    """namespace/name."""
    minimum: int = 0
    """Pods that must run, whatever parts they belong to."""
    parts: tuple[GangSubgroup, ...] = ()
    parts_minimum: int | None = None
    """How many of the parts directly below the gang must have what they need as well; None: all of them."""
    roles: tuple[tuple[str, int], ...] = ()
    """(role, least pods)."""
    requirement: TopologyRequirement = TopologyRequirement()
    priority: int | None = None
    """None: the highest of its pods."""
    preempts: bool = True
    is_preemptible: bool = True
    is_evicted_whole: bool = False
    """Its pods yield all together or not at all, also those above the minimum."""
    has_fixed_minimum: bool = False
    """Whether the API server lets no one change the minimum."""
    queue: str = ""
    """The KAI queue in which it is: the fair-share discipline decides about it, and no other step of a cycle."""
    budget_queue: str = ""
    """The queue of KAI or Volcano whose cost budget concerns it."""
    node_pool: str = ""
    """The node pool in which the shards of KAI decide about it; empty for the nodes without a label."""
    labels: tuple[tuple[str, str], ...] = ()
    """Of a PodGroup of KAI: one of them may name its node pool. Which one is a setting of KAI."""
    created_s: float = 0.0
    """When its object was created."""
    succeeded: int = 0
    """Pods of it that have ended with success."""
    stale_since_s: float | None = None
    """Since when fewer of its pods run than it needs, where that was recorded."""
    unreadable: str = ""
    """The fault of its definition: its pods wait until that is corrected."""


def parts_fault(parts: tuple[GangSubgroup, ...]) -> str:
    """Why these parts make no tree; empty when they do."""
    parents: dict[str, str] = {}
    for part in parts:
        if not part.name:
            return "a part has no name"
        if part.name in parents:
            return f"part {part.name} is defined twice"
        parents[part.name] = part.parent
    rooted = {""}
    for start in parents:
        # A dict, because a chain may be long and every step asks whether it closes a circle.
        path: dict[str, None] = {}
        name = start
        while name not in rooted:
            if name in path:
                return f"part {name} is its own ancestor"
            path[name] = None
            if parents[name] and parents[name] not in parents:
                return f"part {name} is inside part {parents[name]}, which does not exist"
            name = parents[name]
        rooted.update(path)
    return ""


class TopologyFacts(msgspec.Struct, frozen=True):
    """Levels of closeness, outermost first, each the key of a node label."""

    name: str
    levels: tuple[str, ...]


class BudgetFacts(msgspec.Struct, frozen=True):
    """A disruption budget: how many of the pods it covers may be evicted from now on."""

    name: str
    namespace: str
    allowed: int
    pods: frozenset[str] = frozenset()
    """Keys of the pods it covers."""
