"""Builds the rows of `shoal queue` for the queues of Volcano and KAI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from shoal.api.decode import Document, meta_of
from shoal.api.pod import Pod
from shoal.api.resources import PODS
from shoal.cli.manifests import Loaded
from shoal.cli.object_source import Source
from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState
from shoal.engine.fitter import Fitter
from shoal.engine.intake import Intake
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fair_facts import fair_facts
from shoal.engine.queues.disciplines.kai.fair_queues import QueueNode, fair_queues
from shoal.engine.queues.disciplines.kai.objects import RESOURCES
from shoal.engine.queues.disciplines.volcano.amounts import GPU, Figures
from shoal.engine.queues.disciplines.volcano.queue_shares import queue_shares
from shoal.sim.kai_queues import is_queue as is_kai
from shoal.sim.kai_queues import kai_queues, kai_shards
from shoal.sim.queue_faults import queue_faults
from shoal.sim.volcano_queues import is_queue as is_volcano
from shoal.sim.volcano_queues import volcano_groups, volcano_tree
from shoal.store.held_pods import HeldPod
from shoal.views.other_queues import KAI, OtherQueue
from shoal.views.queue_backlog import plain

VOLCANO = "Volcano"
_MADE = ("default", "root")
"""Queues that Volcano makes when it starts."""
_KAI_NAMES = {"gpu": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}


def has_other_queues(documents: Sequence[Document]) -> bool:
    return any(is_volcano(each) or is_kai(each) for each in documents)


def other_queues_of(source: Source) -> list[OtherQueue]:
    """Volcano's, then KAI's, each by name."""
    if not has_other_queues(source.documents):
        return []
    loaded = source.taken()
    held = {
        (hold.queue, hold.group or key)
        for key, hold in loaded.manifests.gated.items()
        if isinstance(hold, HeldPod) and hold.queue
    }
    waiting = Counter(queue for queue, _ in held)
    found = [*_of_volcano(source.documents, loaded, waiting), *_of_kai(source.documents, loaded, waiting)]
    faults = {
        (VOLCANO if is_volcano(document) else KAI, meta_of(document.value).name): fault
        for document, fault in queue_faults(source.documents)
    }
    return [replace(each, fault=faults.get((each.project, each.queue), "")) for each in found]


def other_queues_in_use(source: Source) -> list[OtherQueue]:
    """Without the queues that Volcano makes itself, unless Volcano has other queues, groups or pods."""
    found = other_queues_of(source)
    return found if _uses_volcano(source.documents) else [each for each in found if each.project != VOLCANO]


def _uses_volcano(documents: Sequence[Document]) -> bool:
    if volcano_groups(documents):
        return True
    return any(
        each.value.spec.scheduler_name == "volcano"
        if isinstance(each.value, Pod)
        else is_volcano(each) and meta_of(each.value).name not in _MADE
        for each in documents
    )


def named(queues: Sequence[OtherQueue], name: str) -> list[OtherQueue]:
    """`x`, `queue/x` and `volcano/x` mean the queue x."""
    word, slash, rest = name.partition("/")
    is_kind = slash and word.partition(".")[0].lower() in ("queue", "queues", "q", "volcano", "kai")
    wanted = rest if is_kind else name
    projects = {word.lower()} & {"volcano", "kai"} if is_kind else set[str]()
    return [each for each in queues if each.queue == wanted and (not projects or each.project.lower() in projects)]


def _of_volcano(documents: Sequence[Document], loaded: Loaded, waiting: Mapping[str, int]) -> Iterator[OtherQueue]:
    tree = volcano_tree(documents)
    if tree is None or loaded.volcano is None:
        return
    shares = queue_shares(loaded.volcano.opened(_with_held_pods(loaded)))
    for name, queue in sorted(tree.queues.items()):
        mine = shares[name]
        yield OtherQueue(
            VOLCANO,
            name,
            queue.parent if queue.parent in tree.queues else "",
            queue.status.state,
            _plain(queue.capability()),
            _plain(queue.deserved()),
            _figures(mine.allocated),
            waiting.get(f"{VOLCANO} queue {name}", 0),
            _figures(mine.deserved),
            _figures(mine.guarantee),
            _figures(mine.elastic),
            _figures(mine.inqueue),
        )


def _with_held_pods(loaded: Loaded) -> CycleState:
    """The cluster with the pods that queues hold back, which count as requested."""
    intake = Intake(Cluster())
    for event in loaded.manifests.before_queues or loaded.manifests.events:
        intake.apply(event)
    placement, ledger = Placement(intake.cluster, NO_PREFERENCES), Ledger(intake.cluster)
    return CycleState(intake.cluster, placement, ledger, Fitter(placement, ledger, 0), loaded.now_s)


def _of_kai(documents: Sequence[Document], loaded: Loaded, waiting: Mapping[str, int]) -> Iterator[OtherQueue]:
    queues = kai_queues(documents)
    shards = kai_shards(documents)
    shares: dict[str, QueueNode] = {}
    for shard in shards.shards.each:
        usage = shards.usage.get(shard.name)
        facts = fair_facts(loaded.cluster, fair_queues(queues.values()), shard.settings.k, usage, shard.pool)
        shares |= facts.tree.nodes
    for name, queue in sorted(queues.items()):
        used = dict(zip(RESOURCES, shares[name].allocated, strict=True)) if name in shares else {}
        yield OtherQueue(
            KAI,
            name,
            queue.spec.parent_queue,
            "",
            _of_resources({resource: queue.limit(resource) for resource in _KAI_NAMES}),
            _of_resources({resource: queue.quota(resource) for resource in _KAI_NAMES}),
            _of_resources({resource: amount for resource, amount in used.items() if amount}),
            waiting.get(f"{KAI} queue {name}", 0),
            _of_resources(dict(zip(RESOURCES, shares[name].fair_share, strict=True)) if name in shares else {}),
        )


def _plain(amounts: Mapping[str, int]) -> dict[str, float]:
    return {name: plain(name, amount) for name, amount in amounts.items() if name != PODS}


def _figures(amounts: Figures) -> dict[str, float]:
    """GPUs are counted in thousandths, as cores are: what a queue deserves may be a part of one."""
    return {
        name: plain("cpu" if name == GPU else name, round(amount))
        for name, amount in amounts.items()
        if name != PODS and round(amount)
    }


def _of_resources(amounts: Mapping[str, int | None]) -> dict[str, float]:
    """GPUs are counted in thousandths, as cores are."""
    known = {resource: amount for resource, amount in amounts.items() if amount is not None}
    return {
        _KAI_NAMES[resource]: plain("cpu", amount) if resource == "gpu" else plain(resource, amount)
        for resource, amount in known.items()
    }
