"""Finds the remaining content of a terminating namespace, and computes the namespace's conditions. The functions are
pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from shoal.client.item import Obj
from shoal.client.kind import Kind

FINALIZER_ESTIMATE_S = 15
"""The estimated time of objects with finalizers."""
_DISCOVERY, _PARSING, _CONTENT = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
)
_REMAINING, _FINALIZERS = "NamespaceContentRemaining", "NamespaceFinalizersRemaining"
_GOOD = {
    _DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    _PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    _CONTENT: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    _REMAINING: ("ContentRemoved", "All content successfully removed"),
    _FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class Left(msgspec.Struct, rename="camel", gc=False):
    """The relevant fields of a terminating object."""

    name: str
    uid: str = ""
    finalizers: tuple[str, ...] | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class RemainingContent(msgspec.Struct):
    """The remaining content, collected kind by kind."""

    counts: dict[str, int] = {}
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    failures: list[str] = []
    undiscovered: str = ""
    estimate_s: int = 0

    def count(self, kind: Kind, left: Iterable[Left]) -> None:
        there = list(left)
        if not there:
            return
        self.counts[f"{kind.plural}.{kind.group}"] = len(there)
        for one in there:
            self.finalizers.update(one.finalizers or ())
            wait_s = FINALIZER_ESTIMATE_S if one.finalizers else 0
            self.estimate_s = max(self.estimate_s, wait_s, one.deletion_grace_period_seconds or 0)

    @property
    def is_empty(self) -> bool:
        return not (self.counts or self.failures or self.undiscovered)

    def bad(self) -> dict[str, tuple[str, str]]:
        """Reason and message of each condition that reports a problem."""
        found: dict[str, tuple[str, str]] = {}
        if self.undiscovered:
            found[_DISCOVERY] = ("DiscoveryFailed", self.undiscovered)
        if self.failures:
            reported = ", ".join(sorted(self.failures))
            words = f"Failed to delete all resource types, {len(self.failures)} remaining: {reported}"
            found[_CONTENT] = ("ContentDeletionFailed", words)
        if self.counts:
            reported = ", ".join(
                sorted(f"{name} has {count} resource instances" for name, count in self.counts.items())
            )
            found[_REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {reported}")
        if self.finalizers:
            reported = ", ".join(
                sorted(f"{name} in {count} resource instances" for name, count in self.finalizers.items())
            )
            words = f"Some content in the namespace has finalizers remaining: {reported}"
            found[_FINALIZERS] = ("SomeFinalizersRemain", words)
        return found


def conditions(present: Sequence[Obj], remaining: RemainingContent, now: str) -> list[Obj]:
    """The updated conditions of a namespace; other conditions keep their position."""
    bad = remaining.bad()
    by_type = {one["type"]: one for one in present}
    for type_, good in _GOOD.items():
        status = "True" if type_ in bad else "False"
        reason, message = bad.get(type_, good)
        before = by_type.get(type_)
        since = before["lastTransitionTime"] if before is not None and before["status"] == status else now
        by_type[type_] = {
            "type": type_,
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }
    return list(by_type.values())
