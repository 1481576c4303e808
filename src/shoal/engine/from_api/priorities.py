"""Computes a pod's priority as the API server's admission would have set it.

A pod from a cluster carries its number; one written by hand names a class, or gets the default one. A missing
class is the user's error: the API server refuses such a pod, and a guess would decide who is evicted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

import msgspec

from shoal.api.disruption import PriorityClass
from shoal.api.pod import PodSpec
from shoal.api.stated_capacity import stated_by_classes
from shoal.units.errors import UserError, Where, excerpt

SYSTEM_PRIORITY = 2_000_000_000
"""From here on a pod belongs to the system and is not preempted."""

_NEVER = "Never"


class Rank(msgspec.Struct, frozen=True):
    """A priority, and whether it allows preemption."""

    value: int = 0
    preempts: bool = True


_BUILT_IN: Mapping[str, Rank] = {
    "system-cluster-critical": Rank(SYSTEM_PRIORITY),
    "system-node-critical": Rank(SYSTEM_PRIORITY + 1000),
}

_KAI: Mapping[str, Rank] = {
    "train": Rank(50),
    "build-preemptible": Rank(75),
    "build": Rank(100),
    "inference": Rank(125),
}
"""KAI installs these, so they are not in manifests."""


class Priorities:
    """The priority classes of a cluster."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        self._known = dict(_BUILT_IN)
        self._default = Rank()
        defaults = []
        every = tuple(classes)
        self.capacity = stated_by_classes(every)
        """The capacity types that classes state for their pods."""
        for each in every:
            rank = Rank(each.value, each.preemption_policy != _NEVER)
            self._known[each.metadata.name] = rank
            if each.global_default:
                defaults.append(rank)
        if defaults:
            # Two defaults can only come from a race; the API server then takes the lower.
            self._default = min(defaults, key=lambda rank: rank.value)

    def of_pod(self, spec: PodSpec, where: Where) -> Rank:
        """`where` is the pod spec's place."""
        never = spec.preemption_policy == _NEVER
        if spec.priority is not None:
            known = self._known.get(spec.priority_class_name)
            return Rank(spec.priority, not never and (known is None or known.preempts))
        if not spec.priority_class_name:
            return Rank(self._default.value, self._default.preempts and not never)
        rank = self.named(spec.priority_class_name, where.below("priorityClassName"))
        return Rank(rank.value, rank.preempts and not never)

    def has(self, name: str) -> bool:
        return name in self._known or name in _KAI

    def remedy(self, name: str) -> str:
        """What to do about a class that does not exist."""
        close = difflib.get_close_matches(name, self._known, n=1)
        return f"Did you mean {close[0]}?" if close else "Create the PriorityClass, or correct priorityClassName."

    def named(self, name: str, where: Where) -> Rank:
        rank = self._known.get(name) or _KAI.get(name)
        if rank is None:
            remedy = self.remedy(name)
            fix = remedy[0].lower() + remedy[1:].rstrip(".")
            raise UserError(f"PriorityClass {excerpt(name)} not found", where=where, fix=fix)
        return rank
