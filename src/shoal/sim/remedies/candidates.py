"""A change that might let a waiting pod or gang run, before it is tried."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from shoal.views.remedies import Remedy


class WaitingSubject(msgspec.Struct, frozen=True):
    """What waits."""

    name: str
    """A pod, or a gang."""
    pods: tuple[str, ...]
    """Its waiting pods."""
    is_gang: bool = False
    is_whole: bool = False
    """Whether all its pods have to run, not only the minimum of the gang: so it is for workloads of queues."""


class Candidate(msgspec.Struct, frozen=True):
    remedy: Remedy
    apply: Callable[[ExitStack], None]
    changes_pods: bool = False
    """Whether the pods of the subject themselves change."""
    changes_requests: bool = False
    """Whether they then request other resources, for which other quotas count."""
    nodes: tuple[str, ...] = ()
    """The nodes that change."""


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

        return Candidate(self.remedy(names), apply, nodes=names)
