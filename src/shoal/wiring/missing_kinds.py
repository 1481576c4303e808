"""Logs once which kinds a controller needs and the server does not serve, and once when they are served.

The controllers wait for these kinds by themselves (`client/served.py`). The log line names the missing kinds, what does
not work without them, and the command that installs them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from shoal.client.clock import Clock
from shoal.client.ecosystem_kinds import (
    CLUSTER_POLICIES,
    CLUSTER_QUEUES,
    KAI_POD_GROUPS,
    KAI_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    VOLCANO_POD_GROUPS,
    VOLCANO_QUEUES,
    WORKLOADS,
)
from shoal.client.kind import Kind
from shoal.client.served import Served

_log = logging.getLogger("shoal")
_EVERY_S = 4.0


class RequiredKinds(msgspec.Struct, frozen=True):
    """The kinds that some controllers need."""

    project: str
    """Its name in `shoal crds --project`."""
    owner: str
    kinds: tuple[Kind, ...]
    parts: tuple[str, ...]
    without: str
    older: tuple[str, ...] = ()
    """Older versions that can be used as well."""


NEEDS = (
    RequiredKinds(
        "kueue",
        "Kueue",
        (WORKLOADS, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS),
        ("queues", "jobs", "pods"),
        "jobs and pods are not queued",
        ("v1beta1",),
    ),
    RequiredKinds(
        "volcano",
        "Volcano",
        (VOLCANO_QUEUES, VOLCANO_POD_GROUPS),
        ("volcano",),
        "its queues, pod groups and jobs have no status",
    ),
    RequiredKinds(
        "kai-scheduler", "KAI", (KAI_QUEUES, KAI_POD_GROUPS), ("kai",), "its queues and pod groups have no status"
    ),
    RequiredKinds(
        "gpu-operator", "the GPU operator", (CLUSTER_POLICIES,), ("operator",), "no component of GPU nodes is installed"
    ),
)


class MissingKinds:
    def __init__(self, served: Served, parts: Sequence[str], clock: Clock) -> None:
        self._served = served
        self._clock = clock
        self._needs = [need for need in NEEDS if any(part in parts for part in need.parts)]
        self._parts = parts
        self._reported: dict[str, frozenset[Kind]] = {}
        for need in self._needs:
            for kind in need.kinds:
                served.when_there(kind, self._came, *(kind._replace(version=version) for version in need.older))

    def report(self) -> None:
        """Log what changed since the last call."""
        for need in self._needs:
            missing = frozenset(kind for kind in need.kinds if self._served.find(kind) is None)
            before = self._reported.get(need.project, frozenset())
            if missing - before:
                _log.warning("%s", missing_line(need, list(missing), self._parts))
            elif before and not missing:
                # At the level of the first line: a reader who sees only warnings sees the end as well.
                _log.warning("the kinds of %s are served now", need.owner)
            self._reported[need.project] = missing

    def _came(self, _: Kind) -> None:
        """Called after a look at the served kinds."""
        self.report()

    async def run(self) -> None:
        """Until cancelled; another task refreshes `served`."""
        while True:
            self.report()
            await self._clock.sleep(_EVERY_S)


def missing_line(need: RequiredKinds, missing: Sequence[Kind], parts: Sequence[str]) -> str:
    names = ", ".join(sorted(f"{kind.plural}.{kind.group}" for kind in missing))
    waiting = " and ".join(part for part in need.parts if part in parts)
    verb = "waits" if waiting.count(" and ") == 0 else "wait"
    return (
        f"the server does not have {names}: until it does, {waiting} {verb} and {need.without}; "
        f"to install them: shoal crds --project {need.project} | kubectl apply -f -"
    )
