"""What is known of a gang: how many must run for any to run, in which parts, and how close together.

A gang is a tree. A leaf counts pods, an inner part counts the parts below it that have what they need; the gang itself
is the root. A gang without parts is a root that counts pods. Roles cut the same pods another way and have minima of
their own. Every ecosystem's group (Volcano, KAI, scheduler-plugins, upstream) is read into this one shape.
"""

from __future__ import annotations

import msgspec


class Wish(msgspec.Struct, frozen=True):
    """How close together pods should be, in levels of one topology."""

    topology: str = ""
    """Name of the topology whose levels these are."""
    required: str = ""
    """Level: all in one domain of it, or not at all."""
    preferred: str = ""
    """Level: all in one domain of it if possible, else in as few as possible."""
    slice_level: str = ""
    """Level: every slice in one domain of it."""
    slice_size: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.required or self.preferred or self.slice_level)


class Part(msgspec.Struct, frozen=True):
    """A subgroup of a gang."""

    name: str
    parent: str = ""
    """The part it belongs to; empty: the gang itself."""
    minimum: int = 0
    """Pods of a leaf, or parts of an inner part, that must run."""
    wish: Wish = Wish()


class GroupFacts(msgspec.Struct, frozen=True):
    """A gang as its object describes it."""

    name: str
    """namespace/name."""
    minimum: int = 0
    """Pods that must run; with parts, the parts directly below the gang that must have what they need (0: all)."""
    parts: tuple[Part, ...] = ()
    roles: tuple[tuple[str, int], ...] = ()
    """(role, least pods)."""
    wish: Wish = Wish()
    priority: int | None = None
    """None: the highest of its pods."""
    preempts: bool = True
    yields: bool = True
    goes_whole: bool = False
    """Its pods yield all together or not at all, also those above the minimum."""


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
