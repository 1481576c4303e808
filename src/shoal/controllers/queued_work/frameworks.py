"""Reads which kinds of jobs are queued: `integrations.frameworks` of Kueue's configuration, in its names.

A configuration that lists none means all kinds. The configuration that Kueue installs lists all kinds but Spark's, and
without a configuration no kind should bypass the quota; Kueue's own default is `batch/job` alone.
"""

from __future__ import annotations

import msgspec

from shoal.api.kueue import Configuration

_PODS = frozenset({"pod", "deployment", "replicaset", "statefulset", "leaderworkerset.x-k8s.io/leaderworkerset"})
"""If one of these is listed, the pods that it creates are queued."""


class Frameworks(msgspec.Struct, frozen=True):
    names: frozenset[str] = frozenset()
    """Empty means all."""

    def has(self, group: str, kind: str) -> bool:
        if not self.names:
            return True
        if (group, kind) == ("", "Pod"):
            return not self.names.isdisjoint(_PODS)
        if (group, kind) == ("apps", "ReplicaSet"):
            # Kueue has no name for ReplicaSets alone.
            return not self.names.isdisjoint({"deployment", "replicaset"})
        return framework_of(group, kind) in self.names


ALL = Frameworks()


def framework_of(group: str, kind: str) -> str:
    """The name of the kind in Kueue's configuration."""
    name = kind.lower()
    return name if group in {"", "apps"} else f"{group}/{name}"


def frameworks_of(configuration: Configuration) -> Frameworks:
    return Frameworks(frozenset(configuration.integrations.frameworks))
