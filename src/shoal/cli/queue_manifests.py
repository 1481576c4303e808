"""Reads manifests for the commands about quotas: one set, or the present and a proposed one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.files import STANDARD_INPUT, read_manifests
from shoal.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Configuration,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
from shoal.api.topology import KueueTopology
from shoal.cli.manifest_errors import read_valid, report_errors
from shoal.cli.manifests import Loaded, loaded_of, rounds_of, warn
from shoal.cli.other_queues import has_other_queues
from shoal.engine.events import GroupSeen, PodArrived
from shoal.sim.gang_future import GangWatch, gang_future, queued_gangs
from shoal.sim.kai_queues import kai_queues, kai_shards
from shoal.sim.kai_rounds import grouped
from shoal.sim.queue_diff import Queued
from shoal.sim.queue_future import Future, future_of
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.queued_pods import speaks_of_queues
from shoal.sim.rounds import Rounds
from shoal.store.inventory import Inventory
from shoal.store.manifest_cluster import ManifestCluster
from shoal.store.queues import ManifestQueues, read_queue_manifests
from shoal.units.errors import UserError, Where

Lived = tuple[Future, Sequence[Queued]]

RULES = (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Configuration,
    KueueTopology,
    LocalQueue,
    ResourceFlavor,
    WorkloadPriorityClass,
)
"""Kinds that say how quota is given, and nothing about who wants it."""


def are_queues(documents: Sequence[Document]) -> bool:
    """Whether they speak of Kueue's queues at all."""
    return speaks_of_queues(Inventory(documents))


def queues_of(documents: Sequence[Document], where: Sequence[str]) -> ManifestQueues:
    """Returns the state of all queues; `where` names the source of the documents."""
    inventory = Inventory(documents)
    if not speaks_of_queues(inventory):
        raise _no_queues(where)
    return read_queue_manifests(inventory)


def futures_of(paths: Sequence[str], seed: int) -> tuple[Lived, Lived]:
    """The future of all workloads under the present and under the proposed quotas, each with its workloads."""
    if len(paths) != 2:
        many = "is given once" if len(paths) == 1 else f"is given {len(paths)} times" if paths else "is missing"
        raise UserError(many, where=Where(path="--filename"), fix="give it twice: -f NOW -f PROPOSED")
    if paths[0] == paths[1] == STANDARD_INPUT:
        raise UserError("standard input can be read once only", where=Where(path="--filename"))
    now, present, errors = read_valid(lambda report: read_manifests([paths[0]], report=report), loaded_of)
    report_errors(errors)

    def read_proposed(report: Callable[[UserError], None]) -> list[Document]:
        proposed = read_manifests([paths[1]], report=report)
        is_change = bool(proposed) and all(
            isinstance(document.value, RULES) or has_other_queues([document]) for document in proposed
        )
        return replaced(now, proposed) if is_change else proposed

    proposed, then, errors = read_valid(read_proposed, loaded_of)
    report_errors(errors)
    if not proposed:
        raise _no_queues(paths[1:])
    worlds = [(now, present), (proposed, then)]
    warn(dict.fromkeys(warning for _, loaded in worlds for warning in loaded.warnings))
    one, other = (lived(*world, path, seed) for world, path in zip(worlds, paths, strict=True))
    return one, other


def replaced(now: Sequence[Document], proposed: Sequence[Document]) -> list[Document]:
    """Those of now, with what is proposed in place of what has its kind and name."""
    names = {_name(document) for document in proposed}
    return [*(document for document in now if _name(document) not in names), *proposed]


def _name(document: Document) -> tuple[str, str]:
    value, meta = document.value, meta_of(document.value)
    # Of configurations there is one, whatever it is called.
    name = "" if isinstance(value, Configuration) else meta.key
    # Queues of Volcano and KAI differ in their group only.
    kind = f"{value.api_version}/{value.kind}" if isinstance(value, Unknown) else type(value).__qualname__
    return kind, name


def lived(documents: Sequence[Document], loaded: Loaded, path: str, seed: int) -> Lived:
    """The future of all workloads. Raises UserError where there are no queues."""
    # Where no node is known pods wait for ever, and to try all of them again each round is the larger part of the work.
    rounds = rounds_of(loaded, seed, steps=None if loaded.cluster.row_of else (), recreate=True)
    has_others = loaded.fairshare is not None or loaded.volcano is not None
    manifests = loaded.manifests
    made = [placed.value for placed in manifests.waiting]
    if has_others:
        _add_held_pods(documents, manifests, rounds)
    gangs = queued_gangs(documents, manifests.before_queues or manifests.events, made) if has_others else []
    if isinstance(rounds, QueueRounds) and loaded.queued is not None:
        future = future_of(rounds, lambda begun: GangWatch(rounds.cluster, gangs, begun))
        return future, [*loaded.queued.workloads, *gangs]
    if not has_others:
        raise _no_queues([path])
    due_s = loaded.fairshare.next_s if loaded.fairshare is not None else None
    return gang_future(rounds, gangs, due_s), gangs


def _add_held_pods(documents: Sequence[Document], manifests: ManifestCluster, rounds: Rounds) -> None:
    """Pods that a queue of KAI or Volcano holds now are decided with the others: it may let them go later."""
    for event in grouped(kai_queues(documents), manifests.before_queues or (), kai_shards(documents)):
        if isinstance(event, GroupSeen) or (isinstance(event, PodArrived) and event.key in manifests.held_asks):
            rounds.apply(event)


def _no_queues(paths: Sequence[str]) -> UserError:
    return UserError(
        "holds no queues",
        where=Where(file=", ".join(paths)),
        fix="a ClusterQueue, Cohort, LocalQueue or Workload of kueue.x-k8s.io is needed, or a Queue of Volcano or KAI",
    )
