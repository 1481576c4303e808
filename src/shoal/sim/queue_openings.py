"""Finds and tries the changes that remove what keeps a workload out of its queue: a stopped queue, the labels of a
namespace, a misspelled ClusterQueue, ResourceFlavor or Topology; or a workload that is deactivated.

Guarantees: a change is a remedy only if the workload is then admitted, with another such change or with more quota
where that is lacking as well. A name is proposed only if its object exists. Nothing of a trial is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from shlex import join as joined
from typing import NamedTuple

from msgspec import structs

from shoal.api.requirement import Requirement
from shoal.api.selectors import Selector
from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import ClusterQueueFacts, FlavorFacts, LocalQueueFacts, WorkloadFacts
from shoal.engine.queues.remedies import Effect, FieldChange, RemedyKind
from shoal.engine.queues.remedies import Remedy as QuotaRemedy
from shoal.engine.queues.state import Fact, Queues
from shoal.sim.queue_coverage import covering
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects
from shoal.units.near_texts import nearest_name
from shoal.views.enumeration import few
from shoal.views.remedies import Remedy, both
from shoal.views.remedy_commands import copy_command, field_command, names_command, replacement_command

_MOST_OBSTACLES = 3
"""That are removed one after the other."""
_MOST_NAMES = 4
_LOCAL_QUEUE = "localqueue"
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that the API server sets."""


class Opening(NamedTuple):
    """A change of objects, before it is tried."""

    remedy: Remedy
    facts: tuple[Fact, ...] = ()
    """As they would be."""
    labels: tuple[tuple[str, dict[str, str]], ...] = ()
    """Of namespaces, as they would be."""
    workload: WorkloadFacts | None = None
    """The workload itself, where it would be another."""


class FoundOpenings(NamedTuple):
    remedies: list[Remedy]
    notes: list[str]
    """Similar names that exist, and why a change does not suffice."""


class QueueOpenings:
    """The obstacles of one workload."""

    def __init__(
        self,
        rounds: QueueRounds,
        facts: WorkloadFacts,
        objects: Objects,
        told: Callable[[QuotaRemedy], Remedy],
    ) -> None:
        self._rounds = rounds
        self._facts = facts
        self._objects = objects
        self._told = told

    def tried(self, found: Sequence[QuotaRemedy], quota: Callable[[], Sequence[QuotaRemedy]]) -> FoundOpenings | None:
        """None where no obstacle can be removed by a change that is known. `found`: what `quota` returned."""
        openings = self._openings(found)
        if not openings:
            return None
        notes = [] if _is_stop(found) else [each.remedy.words for each in openings]
        remedy = self._removed(openings, quota, _MOST_OBSTACLES - 1)
        if remedy is not None:
            return FoundOpenings([remedy], [])
        return FoundOpenings([], [*notes, "Then it would wait as well."] if notes else [])

    def _removed(
        self, openings: Sequence[Opening], quota: Callable[[], Sequence[QuotaRemedy]], left: int
    ) -> Remedy | None:
        remedy = openings[0].remedy
        for each in openings[1:]:
            remedy = both(remedy, each.remedy)
        with self._opened(openings):
            found = quota()
            turn = next((each for each in found if each.kind is RemedyKind.TURN), None)
            if turn is not None:
                return remedy if turn.effect in (Effect.ADMITTED, Effect.PREEMPTS) else None
            raised = [each for each in found if each.effect is Effect.ADMITTED and each.kind is RemedyKind.QUOTA]
            if raised:
                return both(remedy, self._told(raised[0]))
            further = self._openings(found) if left else []
            more = self._removed(further, quota, left - 1) if further else None
        return None if more is None else both(remedy, more)

    @contextmanager
    def _opened(self, openings: Sequence[Opening]) -> Iterator[None]:
        queues = self._rounds.kueue.queues
        changed = [fact for each in openings for fact in each.facts]
        before = [fact for fact in map(partial(_present, queues), changed) if fact is not None]
        created = [fact for fact in changed if isinstance(fact, FlavorFacts) and fact.name not in queues.flavors]
        labels = [(name, queues.namespaces.get(name, {})) for each in openings for name, _ in each.labels]
        workload = self._facts
        self._facts = next((each.workload for each in openings if each.workload is not None), workload)
        self._put(changed, [pair for each in openings for pair in each.labels])
        try:
            yield
        finally:
            self._facts = workload
            for fact in created:
                queues.drop(FlavorFacts, fact.name)
            self._put(before, labels)

    def _put(self, facts: Sequence[Fact], labels: Sequence[tuple[str, dict[str, str]]]) -> None:
        kueue, now_s = self._rounds.kueue, self._rounds.now_s
        for fact in facts:
            kueue.queues.put(fact)
        for namespace, of_it in labels:
            kueue.queues.put_namespace(namespace, of_it)
        kueue.queues.refresh()
        # It belongs to another queue, or to one that is open now.
        kueue.drop_workload(self._facts.key, now_s)
        kueue.put_workload(self._facts, now_s)
        self._rounds.placement.renew()

    def _openings(self, found: Sequence[QuotaRemedy]) -> list[Opening]:
        """Empty unless every change of the obstacle is known."""
        changes = found[0].changes if found and found[0].kind is RemedyKind.CORRECT else ()
        absent = [str(change.after) for change in changes if change.field == "coveredResources"]
        if absent:
            return self._covering(absent)
        openings = [self._opening(change) for change in changes]
        return [each for each in openings if each is not None] if all(openings) else []

    def _covering(self, absent: Sequence[str]) -> list[Opening]:
        queue = self._queue()
        found = None if queue is None else covering(queue, self._facts, absent, is_living=self._objects.is_living)
        return [] if found is None else [Opening(found[0], (found[1],))]

    def _opening(self, change: FieldChange) -> Opening | None:
        match change.object, change.field:
            case "LocalQueue" | "ClusterQueue", "stopPolicy":
                return self._restarted(change)
            case "ClusterQueue", "namespaceSelector":
                return self._opened_to_all(change)
            case "Workload", "spec.active":
                return self._activated(change)
            case "Namespace", "labels":
                return self._labelled(change.name)
            case "ClusterQueue", "":
                return self._other_cluster_queue(change.name)
            case "ResourceFlavor", "":
                return self._other_flavor(change.name)
            case "Topology", "":
                return self._other_topology(change.name)
        return None

    def _restarted(self, change: FieldChange) -> Opening:
        queues = self._rounds.kueue.queues
        facts: Fact
        if change.object == "LocalQueue":
            facts = structs.replace(queues.local_queues[change.name], stop="None")
        else:
            facts = structs.replace(queues.cluster_queues[change.name].facts, stop="None")
        words = f"{change.object} {change.name} is stopped (spec.stopPolicy: {change.before}): set it to None."
        command = field_command(change.object.lower(), change.name, {"stopPolicy": "None"})
        return Opening(Remedy(words, (command,) if self._objects.is_living else ()), (facts,))

    def _opened_to_all(self, change: FieldChange) -> Opening:
        queue = self._rounds.kueue.queues.cluster_queues[change.name]
        words = (
            f"ClusterQueue {queue.name} has no namespaceSelector, so no namespace may use it: set it to {{}}, which "
            "allows all."
        )
        command = field_command("clusterqueue", queue.name, {"namespaceSelector": {}})
        facts = structs.replace(queue.facts, namespaces=Selector.EVERYTHING)
        return Opening(Remedy(words, (command,) if self._objects.is_living else ()), (facts,))

    def _activated(self, change: FieldChange) -> Opening:
        words = f"Workload {change.name} is deactivated (spec.active: false): set it to true."
        command = field_command("workload", change.name, {"active": True})
        remedy = Remedy(words, (command,) if self._objects.is_living else ())
        return Opening(remedy, workload=structs.replace(self._facts, active=True))

    def _labelled(self, namespace: str) -> Opening | None:
        queues = self._rounds.kueue.queues
        queue = self._queue()
        before = queues.namespaces.get(namespace, {})
        requirements = () if queue is None else queue.facts.namespaces.requirements or ()
        after = dict(before)
        for requirement in requirements:
            _satisfy(after, requirement)
        if queue is None or not queue.facts.namespaces.matches(after) or _NAMESPACE_NAME in _changed(before, after):
            return None
        words = [f"{key}={after[key]}" if key in after else f"{key}-" for key in _changed(before, after)]
        text = " and ".join(
            f"the label {word}" if not word.endswith("-") else f"no label {word[:-1]}" for word in words
        )
        said = f"Give namespace {namespace} {text}: ClusterQueue {queue.name} admits only such namespaces."
        command = f"kubectl label namespace {joined((namespace, *words))} --overwrite"
        return Opening(Remedy(said, (command,) if self._objects.is_living else ()), labels=((namespace, after),))

    def _other_cluster_queue(self, missing: str) -> Opening | None:
        queues = self._rounds.kueue.queues
        local = queues.local_queues.get(self._facts.queue)
        near = nearest_name(missing, queues.cluster_queues)
        if local is None or not near:
            return None
        words = f'LocalQueue {local.key} names ClusterQueue "{missing}", which does not exist; did you mean "{near}"?'
        # Kueue does not let this field change, so the object is replaced.
        command = replacement_command(_LOCAL_QUEUE, local.key, {"clusterQueue": near})
        facts = structs.replace(local, cluster_queue=near)
        return Opening(Remedy(words, (command,) if self._objects.is_living else ()), (facts,))

    def _other_flavor(self, missing: str) -> Opening | None:
        queue = self._queue()
        near = nearest_name(missing, self._rounds.kueue.queues.flavors)
        if queue is None or not near or near in _flavors(queue):
            return None
        named = f'ClusterQueue {queue.name} names ResourceFlavor "{missing}"'
        words = f'{named}, which does not exist; did you mean "{near}"?'
        paths = self._objects.flavor_paths(queue.name, missing)
        command = names_command("clusterqueue", queue.name, [(path, near) for path in paths])
        commands = (command,) if paths and self._objects.is_living else ()
        return Opening(Remedy(words, commands), (_renamed(queue.facts, missing, near),))

    def _other_topology(self, missing: str) -> Opening | None:
        queues, queue = self._rounds.kueue.queues, self._queue()
        near = nearest_name(missing, queues.topologies)
        named = [] if queue is None else [name for name in _flavors(queue) if queues.flavors[name].topology == missing]
        if not near or not named:
            return None
        flavors = ", ".join(named)
        words = f'ResourceFlavor {flavors} names Topology "{missing}", which does not exist; did you mean "{near}"?'
        # Kueue does not let a flavor change once it has a topology, nor be deleted while a queue uses it.
        new = {name: f"{name}-{near}" for name in named}
        if not {*new.values()}.isdisjoint(queues.flavors):
            return Opening(
                Remedy(f"{words} A flavor with another name can have that topology."),
                tuple(structs.replace(queues.flavors[name], topology=near) for name in named),
            )
        users = [each for each in queues.cluster_queues.values() if not {*new}.isdisjoint(_flavors(each))]
        told = "; ".join(
            f"create ResourceFlavor {after} like {before} with topologyName {near}, and name it instead of {before} in "
            f"{few([f'ClusterQueue {each.name}' for each in users if before in _flavors(each)], _MOST_NAMES)}"
            for before, after in new.items()
        )
        facts: list[Fact] = [
            structs.replace(queues.flavors[old], name=each, topology=near) for old, each in new.items()
        ]
        facts += [_all_renamed(each.facts, new) for each in users]
        said = f"{words} The topology of a ResourceFlavor cannot be changed: {told}."
        return Opening(Remedy(said, self._flavor_commands(new, near, users)), tuple(facts))

    def _flavor_commands(self, new: Mapping[str, str], topology: str, users: Sequence[ClusterQueue]) -> tuple[str, ...]:
        """Empty where a queue has an admission check for some of its flavors only."""
        if not self._objects.is_living or any(rule.flavors for each in users for rule in each.facts.checks):
            return ()
        created = [
            copy_command("resourceflavor", before, after, ("spec", "topologyName"), topology)
            for before, after in new.items()
        ]
        renamed = []
        for queue in users:
            paths = [(path, name) for old, name in new.items() for path in self._objects.flavor_paths(queue.name, old)]
            renamed.append(names_command("clusterqueue", queue.name, paths))
        return (*created, *renamed)

    def _queue(self) -> ClusterQueue | None:
        queues = self._rounds.kueue.queues
        local = queues.local_queues.get(self._facts.queue)
        return None if local is None else queues.cluster_queues.get(local.cluster_queue)


def _is_stop(found: Sequence[QuotaRemedy]) -> bool:
    """Whether other chapters of the explanation name the obstacle."""
    return all(change.field in {"stopPolicy", "spec.active"} for change in found[0].changes)


def _present(queues: Queues, fact: Fact) -> Fact | None:
    match fact:
        case ClusterQueueFacts():
            return queues.cluster_queues[fact.name].facts
        case LocalQueueFacts():
            return queues.local_queues[fact.key]
        case _:
            return queues.flavors.get(fact.name)


def _flavors(queue: ClusterQueue) -> list[str]:
    return list(dict.fromkeys(flavor.name for group in queue.facts.groups for flavor in group.flavors))


def _all_renamed(facts: ClusterQueueFacts, names: Mapping[str, str]) -> ClusterQueueFacts:
    for old, new in names.items():
        facts = _renamed(facts, old, new)
    return facts


def _renamed(facts: ClusterQueueFacts, old: str, new: str) -> ClusterQueueFacts:
    groups = tuple(
        structs.replace(
            group,
            flavors=tuple(structs.replace(each, name=new) if each.name == old else each for each in group.flavors),
        )
        for group in facts.groups
    )
    return structs.replace(facts, groups=groups)


def _satisfy(labels: dict[str, str], requirement: Requirement) -> None:
    """Changes the labels as little as the requirement needs."""
    if requirement.matches(labels):
        return
    match requirement.operator:
        case "In" if requirement.values:
            labels[requirement.key] = requirement.values[0]
        case "Exists":
            labels[requirement.key] = "true"
        case "NotIn" | "DoesNotExist":
            labels.pop(requirement.key, None)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
