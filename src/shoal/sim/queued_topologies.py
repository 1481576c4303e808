"""Tries other topology requests for a queued workload: a wider level, another level, a preferred one, none at all, or a
flavor with a topology.

Guarantees: a change is a remedy only if the workload is then admitted, with places for its pods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice

import msgspec
from msgspec import structs

from shoal.engine.from_api.topologies import KUEUE_PREFERRED, KUEUE_REQUIRED
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorFacts, WorkloadFacts
from shoal.engine.queues.flavors.eligibility import asks_for_topology
from shoal.engine.queues.remedies import is_admitted_as
from shoal.engine.queues.topology_facts import TopologyRequest
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects
from shoal.units.near_texts import near_keys
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import FieldEdit, edit_commands, edit_words, flavor_command

_MOST_TRIED = 8


class _Change(msgspec.Struct, frozen=True):
    apply: Callable[[TopologyRequest], TopologyRequest | None]
    edits: Sequence[FieldEdit]
    words: str
    """Where the field is not written in an object that was read."""
    drops: bool = False


def looser_topology(rounds: QueueRounds, facts: WorkloadFacts, objects: Objects) -> Remedy | None:
    """The change that keeps most of what was requested: None where no such change admits the workload, or where its
    pod sets request several levels."""
    level = _only_level(facts)
    queue = _queue_of(rounds, facts)
    if not level or queue is None:
        return None
    pods = tuple(rounds.pods.each_of(facts.key))[:1] or (f"{facts.key}/0",)
    objects.adopt(facts.key, pods)
    for change in islice(_changes(rounds, queue, level, pods[0], objects), _MOST_TRIED):
        pod_sets = tuple(
            each if each.topology is None else structs.replace(each, topology=change.apply(each.topology))
            for each in facts.pod_sets
        )
        with rounds.pods.without_topology(facts.key) if change.drops else nullcontext():
            works = _is_admitted(rounds, structs.replace(facts, pod_sets=pod_sets))
        if not works:
            continue
        if not change.edits:
            return Remedy(change.words)
        target = objects.target(pods)
        commands = edit_commands(change.edits, target) if objects.is_living else ()
        return Remedy(edit_words(change.edits, target), commands)
    return None


def flavor_with_topology(rounds: QueueRounds, facts: WorkloadFacts, objects: Objects) -> Remedy | None:
    """A flavor of the queue gets a Topology that exists, where none of its flavors has one."""
    queues, queue = rounds.kueue.queues, _queue_of(rounds, facts)
    is_asked = any(asks_for_topology(each.topology) for each in facts.pod_sets)
    flavors = [] if queue is None or not is_asked else list(_flavors(rounds, queue))
    if any(flavor.topology for flavor in flavors):
        return None
    for flavor in flavors:
        # A ResourceFlavor with a topology needs a label.
        for name in queues.topologies if flavor.labels else ():
            queues.put(structs.replace(flavor, topology=name))
            try:
                works = _is_admitted(rounds, facts)
            finally:
                queues.put(flavor)
                queues.refresh()
            if works:
                words = f"In ResourceFlavor {flavor.name}, set spec.topologyName to {name}."
                return Remedy(words, (flavor_command(flavor.name, name),) if objects.is_living else ())
    return None


def _is_admitted(rounds: QueueRounds, facts: WorkloadFacts) -> bool:
    rounds.placement.renew()
    return is_admitted_as(rounds.kueue, facts.key, facts, prover=rounds.prover, now_s=rounds.now_s)


def _changes(rounds: QueueRounds, queue: ClusterQueue, level: str, pod: str, objects: Objects) -> Iterator[_Change]:
    topologies = rounds.kueue.queues.topologies
    known = dict.fromkeys(flavor.topology for flavor in _flavors(rounds, queue) if flavor.topology in topologies)
    for levels in (topologies[name].levels for name in known):
        others = reversed(levels[: levels.index(level)]) if level in levels else _nearest(level, levels)
        for other in others:
            words = f"Require topology level {other} instead of {level}."
            yield _Change(partial(_required, other), objects.edits(pod, level, other), words)
    written = _written(objects, pod)
    path = ("metadata", "annotations")
    if any(level in topologies[name].levels for name in known):
        edits = [FieldEdit.renamed(path, KUEUE_REQUIRED, KUEUE_PREFERRED, level)] if written else []
        yield _Change(_preferred, edits, f"Prefer topology level {level} instead of requiring it.")
    if not known:
        edits = [FieldEdit.removed((*path, KUEUE_REQUIRED), level)] if written else []
        yield _Change(lambda _: None, edits, f"Do not require topology level {level}.", drops=True)


def _required(level: str, wish: TopologyRequest) -> TopologyRequest:
    return structs.replace(wish, required=level)


def _preferred(wish: TopologyRequest) -> TopologyRequest:
    return structs.replace(wish, required="", preferred=wish.required)


def _nearest(level: str, levels: Sequence[str]) -> Iterator[str]:
    near = near_keys(level, levels)
    yield from near
    yield from (each for each in reversed(levels) if each not in near)


def _written(objects: Objects, pod: str) -> bool:
    """Whether the level is written as an annotation of the pod or its template."""
    found = objects.pod(pod)
    annotations: Mapping[str, str] = {} if found is None else found.metadata.annotations
    return KUEUE_REQUIRED in annotations


def _only_level(facts: WorkloadFacts) -> str:
    """The required level, if there is one and no other request."""
    wishes = [each.topology for each in facts.pod_sets if each.topology is not None]
    levels = {wish.required for wish in wishes if wish.required}
    is_simple = all(not (wish.preferred or wish.slice_level or wish.layers) for wish in wishes)
    return levels.pop() if len(levels) == 1 and is_simple else ""


def _queue_of(rounds: QueueRounds, facts: WorkloadFacts) -> ClusterQueue | None:
    queues = rounds.kueue.queues
    local = queues.local_queues.get(facts.queue)
    return None if local is None else queues.cluster_queues.get(local.cluster_queue)


def _flavors(rounds: QueueRounds, queue: ClusterQueue) -> Iterator[FlavorFacts]:
    known = rounds.kueue.queues.flavors
    for name in dict.fromkeys(flavor.name for group in queue.facts.groups for flavor in group.flavors):
        if name in known:
            yield known[name]
