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
from shoal.engine.queues.facts import WorkloadFacts
from shoal.sim.queue_future import Future, future_of
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.queued_pods import speaks_of_queues
from shoal.store.inventory import Inventory
from shoal.store.queues import ManifestQueues, read_queue_manifests
from shoal.units.errors import UserError, Where

Lived = tuple[Future, Sequence[WorkloadFacts]]

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
        is_change = bool(proposed) and all(isinstance(document.value, RULES) for document in proposed)
        return replaced(now, proposed) if is_change else proposed

    proposed, then, errors = read_valid(read_proposed, loaded_of)
    report_errors(errors)
    if not proposed:
        raise _no_queues(paths[1:])
    worlds = [present, then]
    warn(dict.fromkeys(warning for loaded in worlds for warning in loaded.warnings))
    one, other = (_lived(loaded, path, seed) for loaded, path in zip(worlds, paths, strict=True))
    return one, other


def replaced(now: Sequence[Document], proposed: Sequence[Document]) -> list[Document]:
    """Those of now, with what is proposed in place of what has its kind and name."""
    names = {_name(document) for document in proposed}
    return [*(document for document in now if _name(document) not in names), *proposed]


def _name(document: Document) -> tuple[str, str]:
    meta = meta_of(document.value)
    # Of configurations there is one, whatever it is called.
    name = "" if isinstance(document.value, Configuration) else meta.key
    kind = document.value.kind if isinstance(document.value, Unknown) else type(document.value).__qualname__
    return kind, name


def _lived(loaded: Loaded, path: str, seed: int) -> Lived:
    # Where no node is known pods wait for ever, and to try all of them again each round is the larger part of the work.
    rounds = rounds_of(loaded, seed, steps=None if loaded.cluster.row_of else ())
    if not isinstance(rounds, QueueRounds) or loaded.queued is None:
        raise _no_queues([path])
    return future_of(rounds), loaded.queued.workloads


def _no_queues(paths: Sequence[str]) -> UserError:
    return UserError(
        "holds no queues",
        where=Where(file=", ".join(paths)),
        fix="a ClusterQueue, Cohort, LocalQueue or Workload of kueue.x-k8s.io is needed",
    )
