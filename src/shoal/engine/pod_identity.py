"""Represents the identity of a pod beside its request: its place in the order, its gang, and whether it may be
preempted.

Kept apart from the ask, because pods that ask the same share every computation about nodes however different they are
in this. Rejected: one wide record per pod; a hundred thousand plain pods would each carry twenty defaults.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class PodLabels(msgspec.Struct, frozen=True, cache_hash=True):
    """What other pods' selectors see of a pod."""

    namespace: str = "default"
    labels: tuple[tuple[str, str], ...] = ()
    """Sorted by key."""

    @classmethod
    def of(cls, namespace: str, labels: Mapping[str, str]) -> PodLabels:
        return cls(namespace, tuple(sorted(labels.items())))


class PodIdentity(msgspec.Struct, frozen=True, gc=False):
    """One pod's standing. Equal standings may be one object."""

    traits: PodLabels = PodLabels()
    group: str = ""
    """The gang it belongs to, as namespace/name; empty for a pod on its own."""
    part: str = ""
    """The subgroup of the gang that it counts for."""
    role: str = ""
    """Its role in the gang (Volcano's task), for minima per role."""
    queue: str = ""
    """The queue it was sent to: a pod yields only to pods of its own queue."""
    preempts: bool = True
    """Whether others may have to yield to it."""
    is_preemptible: bool = True
    """Whether it may have to yield to others of higher priority."""
    returns: bool = True
    """Whether it is created again when it ends, so that it can be moved."""
    since_s: float = 0.0
    """When it started to run."""
    saved_s: float | None = None
    """When its work was last saved; None when it never is, so everything since the start would be lost."""
    order: int = 0
    """Within its gang, the place in which it is tried; lowest first."""
    saves_every_s: float = 0.0
    """How often it saves by its own account; zero where it does not say."""

    def lost_s(self, now_s: float) -> float:
        """How much of its work would be lost if it were stopped now."""
        since_s = self.since_s if self.saved_s is None else max(self.since_s, self.saved_s)
        lost_s = max(now_s - since_s, 0.0)
        if self.saves_every_s:
            lost_s = min(lost_s, max(now_s - self.since_s, 0.0) % self.saves_every_s)
        return lost_s


NO_IDENTITY = PodIdentity()
