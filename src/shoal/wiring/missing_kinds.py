"""Kinds that a part of Shoal works with and the server does not have: one clear line, and one when they come.

The parts wait by themselves for kinds that may come (`client/served.py`). This only says so: what is not there,
what does not work without it, and the command that installs it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from shoal.client.clock import Clock
from shoal.client.ecosystem_kinds import (
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


class Need(msgspec.Struct, frozen=True):
    """What some parts cannot do without."""

    project: str
    """As `shoal crds --project` calls it."""
    owner: str
    kinds: tuple[Kind, ...]
    parts: tuple[str, ...]
    without: str
    older: tuple[str, ...] = ()
    """Versions that will do."""


NEEDS = (
    Need(
        "kueue",
        "Kueue",
        (WORKLOADS, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS),
        ("queues", "jobs", "pods"),
        "jobs and pods are not queued",
        ("v1beta1",),
    ),
    Need(
        "volcano",
        "Volcano",
        (VOLCANO_QUEUES, VOLCANO_POD_GROUPS),
        ("volcano",),
        "its queues, pod groups and jobs have no status",
    ),
    Need("kai-scheduler", "KAI", (KAI_QUEUES, KAI_POD_GROUPS), ("kai",), "its queues and pod groups have no status"),
)


class MissingKinds:
    def __init__(self, served: Served, parts: Sequence[str], clock: Clock) -> None:
        self._served = served
        self._clock = clock
        self._needs = [need for need in NEEDS if any(part in parts for part in need.parts)]
        self._parts = parts
        self._told: dict[str, frozenset[Kind]] = {}
        for need in self._needs:
            for kind in need.kinds:
                served.when_there(kind, self._came, *(kind._replace(version=version) for version in need.older))

    def tell(self) -> None:
        """After the server was asked what it has: what is new about it."""
        for need in self._needs:
            missing = frozenset(kind for kind in need.kinds if self._served.find(kind) is None)
            before = self._told.get(need.project, frozenset())
            if missing - before:
                _log.warning("%s", missing_line(need, list(missing), self._parts))
            elif before and not missing:
                # As loud as the line that told of them: who reads the one waits for the other.
                _log.warning("the kinds of %s are served now", need.owner)
            self._told[need.project] = missing

    def _came(self, _: Kind) -> None:
        """Called after a look at the served kinds."""
        self.tell()

    async def run(self) -> None:
        """Until cancelled; another task refreshes `served`."""
        while True:
            self.tell()
            await self._clock.sleep(_EVERY_S)


def missing_line(need: Need, missing: Sequence[Kind], parts: Sequence[str]) -> str:
    names = ", ".join(sorted(f"{kind.plural}.{kind.group}" for kind in missing))
    waiting = " and ".join(part for part in need.parts if part in parts)
    verb = "waits" if waiting.count(" and ") == 0 else "wait"
    return (
        f"the server does not have {names}: until it does, {waiting} {verb} and {need.without}; "
        f"to install them: shoal crds --project {need.project} | kubectl apply -f -"
    )
