"""Finds changes of nodes, and tolerations, that let the queue admit a workload whose pods need places in topology
domains.

Topology placement of queues counts nodes by itself, so each change is tried twice: on the facts, where its pods must
find places, and on the nodes of the queues, where a cycle must admit the workload. Nothing of a trial is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from msgspec import structs

from shoal.api.resources import PODS, effective_requests
from shoal.api.taints import Toleration
from shoal.engine.asks import Ask
from shoal.engine.events import NodeFacts
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import PodSet, PodSetAdmission, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.flavors.eligibility import topology_applies, why_barred
from shoal.engine.queues.remedies import is_admitted_as
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import QueueNode
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects, RemedyTrial
from shoal.sim.remedies.unready_nodes import UNREADY

_GPU = "nvidia.com/gpu"


def admissions_anywhere(queues: Queues, facts: WorkloadFacts) -> Iterator[QuotaAssignment]:
    """One for each flavor with a topology that suits the pods, whatever quota and room there is."""
    local = queues.local_queues.get(facts.queue)
    queue = None if local is None else queues.cluster_queues.get(local.cluster_queue)
    if queue is None:
        return
    names = dict.fromkeys(flavor.name for group in queue.facts.groups for flavor in group.flavors)
    for name in names:
        barred = any(why_barred(queues, queue, name, each) for each in facts.pod_sets)
        if topology_applies(queues, name) and not barred:
            yield QuotaAssignment(queue.name, tuple(_assigned(queue, name, each) for each in facts.pod_sets))


def is_admitted_with(rounds: QueueRounds, facts: WorkloadFacts, added: Sequence[Toleration]) -> bool:
    """Whether the queue admits the workload if its pods have these tolerations as well."""
    pod_sets = tuple(
        structs.replace(each, tolerations=tuple(dict.fromkeys((*each.tolerations, *added)))) for each in facts.pod_sets
    )
    changed = structs.replace(facts, pod_sets=pod_sets)
    with rounds.pods.with_asks(facts.key, partial(_tolerating, added=added)):
        rounds.placement.renew()
        return is_admitted_as(rounds.kueue, facts.key, changed, prover=rounds.prover, now_s=rounds.now_s)


@contextmanager
def nodes_as_tried(rounds: QueueRounds, trial: RemedyTrial, objects: Objects) -> Iterator[None]:
    """The queues see nodes and ended pods as they are in the open trial."""
    queues = rounds.kueue.queues
    freed = _freed(trial.ended, objects)
    before = [
        node
        for name, node in queues.nodes.items()
        if name in freed or trial.nodes.get(name) != objects.node_facts.get(name)
    ]
    for node in before:
        facts = objects.node_facts[node.name]
        queues.put(_as_tried(node, facts, trial.nodes[node.name], freed.get(node.name, {})))
    try:
        yield
    finally:
        for node in before:
            queues.put(node)


def _assigned(queue: ClusterQueue, name: str, pod_set: PodSet) -> PodSetAdmission:
    flavors = {}
    for group in queue.facts.groups:
        there = [flavor.name for flavor in group.flavors]
        flavor = name if name in there else there[0]
        flavors.update({resource: flavor for resource in group.resources if resource in pod_set.requests})
    return PodSetAdmission(pod_set.name, pod_set.count, flavors)


def _tolerating(ask: Ask, added: Iterable[Toleration]) -> Ask:
    return structs.replace(ask, tolerations=tuple(sorted({*ask.tolerations, *added}, key=repr)))


def _freed(ended: Iterable[str], objects: Objects) -> Mapping[str, Mapping[str, int]]:
    """Node -> resource -> what the ended pods held."""
    found: dict[str, dict[str, int]] = {}
    for key in ended:
        pod = objects.pods.get(key)
        if pod is None:
            continue
        here = found.setdefault(pod.spec.node_name, {})
        for name, amount in (*effective_requests(pod.spec).items(), (PODS, 1)):
            here[name] = here.get(name, 0) + amount
    return found


def _as_tried(node: QueueNode, before: NodeFacts, after: NodeFacts, freed: Mapping[str, int]) -> QueueNode:
    untainted = {taint.key for taint in before.taints} - {taint.key for taint in after.taints}
    changed = {name: amount for name, amount in after.allocatable.items() if before.allocatable.get(name) != amount}
    if after.gpus != before.gpus:
        changed[_GPU] = after.gpus
    gone = set(before.allocatable) - set(after.allocatable)
    return structs.replace(
        node,
        allocatable={name: amount for name, amount in {**node.allocatable, **changed}.items() if name not in gone},
        taints=after.taints if after.taints != before.taints else node.taints,
        ready=node.ready or any(taint.key in untainted for taint in UNREADY),
        unschedulable=after.unschedulable,
        taken={name: amount - freed.get(name, 0) for name, amount in node.taken.items()},
    )
