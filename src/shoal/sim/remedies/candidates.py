"""A change that might let a waiting pod or gang run, before it is tried."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from shoal.views.remedies import Remedy


class Subject(msgspec.Struct, frozen=True):
    """What waits."""

    name: str
    """A pod, or a gang."""
    pods: tuple[str, ...]
    """Its waiting pods."""
    is_gang: bool = False


class Candidate(msgspec.Struct, frozen=True):
    remedy: Remedy
    apply: Callable[[ExitStack], None]


class NodeCandidates(msgspec.Struct, frozen=True):
    """The same change on one or several nodes, the most promising first: as few nodes as suffice."""

    names: tuple[str, ...]
    apply: Callable[[ExitStack, str], None]
    remedy: Callable[[tuple[str, ...]], Remedy]

    def of(self, count: int) -> Candidate:
        names = self.names[:count]

        def apply(stack: ExitStack) -> None:
            for name in names:
                self.apply(stack, name)

        return Candidate(self.remedy(names), apply)
