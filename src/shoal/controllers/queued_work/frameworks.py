"""Which kinds of work wait in queues here: those that Kueue's configuration lists, by the names that it has for them.

A configuration that lists none means all. The one that Kueue installs lists all but Spark's, and whoever has written
none at all wants none to slip by the quota; Kueue's own code takes `batch/job` alone there.
"""

from __future__ import annotations

import msgspec

from shoal.api.kueue import Configuration

_PODS = frozenset({"pod", "deployment", "replicaset", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"})
"""Whoever queues one of these queues the pods that these make."""


class Frameworks(msgspec.Struct, frozen=True):
    names: frozenset[str] = frozenset()
    """Empty: all."""

    def has(self, group: str, kind: str) -> bool:
        if not self.names:
            return True
        if (group, kind) == ("", "Pod"):
            return not self.names.isdisjoint(_PODS)
        if (group, kind) == ("apps", "ReplicaSet"):
            # Kueue has no word for it alone.
            return not self.names.isdisjoint({"deployment", "replicaset"})
        return framework_of(group, kind) in self.names


ALL = Frameworks()


def framework_of(group: str, kind: str) -> str:
    """As Kueue's configuration calls it."""
    name = kind.lower()
    return name if group in {"", "apps"} else f"{group}/{name}"


def frameworks_of(configuration: Configuration) -> Frameworks:
    return Frameworks(frozenset(configuration.integrations.frameworks))
