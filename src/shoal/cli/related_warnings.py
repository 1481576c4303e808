"""Chooses the warnings about manifests that belong to a question about one object.

Guarantees: of a snapshot with thousands of objects only warnings about the object itself, its pods, its gang and its
queue are printed. Warnings that name no object, such as one about a scheduler profile, are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from shoal.cli.live_history import Family
from shoal.cli.manifests import Loaded

_UNREAD = "not read, because no decision depends on them"


def related_warnings(loaded: Loaded, family: Family) -> list[str]:
    """In their order."""
    return list(_about(loaded.warnings, _keys(loaded, family)))


def _about(warnings: Iterable[str], keys: Collection[str]) -> Iterable[str]:
    for warning in warnings:
        key = _object_of(warning)
        if not warning.startswith(_UNREAD) and (not key or key in keys):
            yield warning


def _object_of(warning: str) -> str:
    """`t/x` of `file.yaml: document 2 (Pod t/x): ...`; empty for a warning about no object."""
    _, _, rest = warning.partition("document ")
    number, opened, rest = rest.partition(" (")
    return rest.partition(")")[0].partition(" ")[2] if opened and number.isdecimal() else ""


def _keys(loaded: Loaded, family: Family) -> set[str]:
    keys = {family.key, family.workload, *family.pods}
    keys |= {gang.name for gang in loaded.cluster.gangs if not keys.isdisjoint((*gang.waiting, *gang.running))}
    queued = loaded.queued
    for facts in queued.workloads if queued is not None else ():
        if queued is not None and (facts.key in keys or not keys.isdisjoint(queued.pods.each_of(facts.key))):
            local = queued.kueue.queues.local_queues.get(facts.queue)
            keys |= {facts.queue} | ({local.cluster_queue} if local is not None else set())
    return keys
