"""Finds faults that only all objects together show: references to missing objects, cycles of cohorts, unusable queues.

These faults cause warnings only. A cluster accepts such objects in any order and waits for the missing ones; objects
that are missing from a folder stay missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shoal.api.kueue import AdmissionCheck, ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from shoal.api.kueue.quotas import ResourceGroup
from shoal.api.node import Node
from shoal.api.selectors import selector_of
from shoal.api.taints import untolerated
from shoal.api.topology import KueueTopology
from shoal.store.inventory import Inventory, Placed
from shoal.units.near_texts import meant_words

MOST_LEVELS = 64
"""The depth of cohorts: far more than any organisation needs, and far less than a tree walk supports."""


def dangling(inventory: Inventory, namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """One line for each fault. `namespaces`: all known ones, with their labels."""
    flavors = {placed.value.metadata.name for placed in inventory.of(ResourceFlavor)}
    for queue in inventory.of(ClusterQueue):
        yield from _groups(queue, queue.value.spec.resource_groups, flavors)
    for cohort in inventory.of(Cohort):
        yield from _groups(cohort, cohort.value.spec.resource_groups, flavors)
    yield from _checks(inventory)
    yield from _flavors(inventory)
    yield from _homeless(inventory)
    yield from _circles(inventory.of(Cohort))
    yield from _local_queues(inventory, namespaces)
    yield from _namesakes(inventory)


def _groups(
    placed: Placed[ClusterQueue] | Placed[Cohort], groups: Iterable[ResourceGroup], known: set[str]
) -> Iterator[str]:
    for index, group in enumerate(groups):
        for place, flavor in enumerate(group.flavors):
            if flavor.name not in known:
                here = placed.at(f"spec.resourceGroups[{index}].flavors[{place}].name")
                idle = (
                    "the cluster queue admits no workloads"
                    if isinstance(placed.value, ClusterQueue)
                    else "it is of no use"
                )
                yield f"{here}: ResourceFlavor {flavor.name} not found: {idle}{meant_words(flavor.name, known)}"


def _checks(inventory: Inventory) -> Iterator[str]:
    known = {placed.value.metadata.name for placed in inventory.of(AdmissionCheck)}
    for queue in inventory.of(ClusterQueue):
        for index, rule in enumerate(queue.value.spec.admission_checks_strategy.admission_checks):
            if rule.name not in known:
                here = queue.at(f"spec.admissionChecksStrategy.admissionChecks[{index}].name")
                yield f"{here}: AdmissionCheck {rule.name} not found: the cluster queue admits no workloads"


def _homeless(inventory: Inventory) -> Iterator[str]:
    """Workloads that hold quota of a missing queue."""
    queues = {placed.value.metadata.name for placed in inventory.of(ClusterQueue)}
    for placed in inventory.of(Workload):
        status = placed.value.status
        admission = None if status.is_true("Finished") else status.admission
        if admission is not None and admission.cluster_queue not in queues:
            here = placed.at("status.admission.clusterQueue")
            yield f"{here}: ClusterQueue {admission.cluster_queue} not found: its usage is not counted"


def _flavors(inventory: Inventory) -> Iterator[str]:
    topologies = {placed.value.metadata.name for placed in inventory.of(KueueTopology)}
    nodes = [placed.value for placed in inventory.of(Node)]
    for flavor in inventory.of(ResourceFlavor):
        spec = flavor.value.spec
        if spec.topology_name and spec.topology_name not in topologies:
            meant = meant_words(spec.topology_name, topologies)
            yield f"{flavor.at('spec.topologyName')}: Topology {spec.topology_name} not found{meant}"
        mine = [node for node in nodes if spec.node_labels.items() <= node.metadata.labels.items()]
        if not spec.node_labels or not nodes:
            continue
        if not mine:
            yield f"{flavor.at('spec.nodeLabels')}: no node has these labels"
            continue
        kept_off = [untolerated(node.spec.taints, spec.tolerations) for node in mine]
        if all(taint is not None and taint not in spec.node_taints for taint in kept_off):
            yield (
                f"{flavor.at('spec.tolerations')}: all of its nodes are tainted, the first with {kept_off[0]}, and the "
                "flavor gives no toleration: only pods that bring one can run there"
            )


def _circles(cohorts: list[Placed[Cohort]]) -> Iterator[str]:
    """Each cycle once, at its first member by name."""
    parents = {placed.value.metadata.name: placed.value.spec.parent_name for placed in cohorts}
    where = {placed.value.metadata.name: placed for placed in cohorts}
    reported: set[str] = set()
    for name in sorted(parents):
        path = [name]
        while (parent := parents.get(path[-1], "")) and parent not in path:
            path.append(parent)
            if len(path) > MOST_LEVELS:
                raise where[name].wrong(
                    "spec.parentName", f"more than {MOST_LEVELS} cohorts above one another", "nest them less deeply"
                )
        if parent == name and name not in reported:
            reported.update(path)
            circle = " -> ".join([*path, name])
            here = where[name].at("spec.parentName")
            yield f"{here}: cohorts in a circle, {circle}: their cluster queues admit no workloads"


def _local_queues(inventory: Inventory, namespaces: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    queues = {placed.value.metadata.name: placed.value for placed in inventory.of(ClusterQueue)}
    for local_queue in inventory.of(LocalQueue):
        namespace, name = local_queue.value.metadata.namespace, local_queue.value.spec.cluster_queue
        here = local_queue.at("spec.clusterQueue")
        queue = queues.get(name)
        if queue is None:
            there = meant_words(name, queues) or (f"; there are {', '.join(sorted(queues))}" if queues else "")
            yield f"{here}: ClusterQueue {name} not found: its workloads are held back{there}"
            continue
        selector = queue.spec.namespace_selector
        if selector is not None and not selector_of(selector).matches(namespaces.get(namespace, {})):
            yield f"{here}: ClusterQueue {name} admits nothing from namespace {namespace}, by its namespaceSelector"


def _namesakes(inventory: Inventory) -> Iterator[str]:
    """Volcano's queues have their own quota: the same GPUs are then distributed twice."""
    names: dict[str, Placed[ClusterQueue]] = {
        placed.value.metadata.name: placed for placed in inventory.of(ClusterQueue)
    }
    for other in inventory.others():
        value = other.value
        if (
            value.kind == "Queue"
            and value.api_version.startswith("scheduling.volcano.sh/")
            and value.metadata.name in names
        ):
            yield (
                f"{other.where}: has the name of a ClusterQueue and nothing to do with it: quota given in both is "
                f"counted twice, and only the ClusterQueue's is kept here ({names[value.metadata.name].where})"
            )
