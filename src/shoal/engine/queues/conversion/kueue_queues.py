"""Reads and writes Kueue's cluster queues, cohorts, flavors and local queues.

In Kueue quotas are given by flavor; the other projects know none, so the quotas of all flavors are added up. A cohort
declares what its members share beyond their own quotas: its quota in the model is the sum of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from shoal.api.kueue.cluster_queues import ClusterQueue
from shoal.api.kueue.cohorts import Cohort
from shoal.api.kueue.flavors import ResourceFlavor
from shoal.api.kueue.local_queues import LocalQueue
from shoal.api.kueue.quotas import ResourceGroup
from shoal.api.resources import amounts
from shoal.engine.queues.conversion.model import (
    ROOT,
    NeutralQueue,
    Queues,
    Written,
    fractions,
    in_engine_units,
    parents_first,
    quantity,
)
from shoal.units.quantity import Quantity

_API = "kueue.x-k8s.io/v1beta2"
FLAVOR = "default-flavor"


class KueueObjects(msgspec.Struct, frozen=True):
    cluster_queues: Sequence[ClusterQueue] = ()
    cohorts: Sequence[Cohort] = ()
    flavors: Sequence[ResourceFlavor] = ()
    local_queues: Sequence[LocalQueue] = ()


class _ReadQueue(msgspec.Struct):
    """A cluster queue or cohort while it is read. Own amounts first, then with the children's."""

    name: str
    parent: str
    nominal: dict[str, int]
    borrowing: dict[str, int]
    lending: dict[str, int]
    weight: float = 1.0
    is_cohort: bool = False


def from_kueue(objects: KueueObjects) -> Queues:
    losses = [*_flavor_losses(objects), *_queue_losses(objects.cluster_queues)]
    nodes: dict[str, _ReadQueue] = {}
    for cohort in objects.cohorts:
        name = cohort.metadata.name
        weight = float(cohort.spec.fair_sharing.weight.nano) / 1e9
        nodes[name] = _ReadQueue(
            name, cohort.spec.parent_name, *_sums(cohort.spec.resource_groups), weight, is_cohort=True
        )
    parents = [queue.spec.cohort_name or queue.spec.cohort for queue in objects.cluster_queues]
    for parent in [*parents, *(node.parent for node in list(nodes.values()))]:
        if parent and parent not in nodes:
            nodes[parent] = _ReadQueue(parent, "", {}, {}, {}, is_cohort=True)
    by_queue = {queue.metadata.name: queue for queue in objects.cluster_queues}
    for (name, queue), parent in zip(by_queue.items(), parents, strict=True):
        if name in nodes:
            losses.append(f"cluster queue {name}: a cohort has the same name; one of them must be renamed first")
            continue
        weight = float(queue.spec.fair_sharing.weight.nano) / 1e9
        nodes[name] = _ReadQueue(name, parent, *_sums(queue.spec.resource_groups), weight)
    whole = {name: _whole(nodes, name, frozenset()) for name in nodes}
    locals_of: dict[str, list[tuple[str, str]]] = {}
    for local in objects.local_queues:
        locals_of.setdefault(local.spec.cluster_queue, []).append((local.metadata.namespace, local.metadata.name))
    found = [
        _neutral(node, whole[name], by_queue.get(name), tuple(sorted(locals_of.get(name, ()))))
        for name, node in nodes.items()
        if not (name == ROOT and node.is_cohort)
    ]
    return Queues(parents_first(found), losses)


def _neutral(
    node: _ReadQueue, whole: Mapping[str, int], queue: ClusterQueue | None, locals_: tuple[tuple[str, str], ...]
) -> NeutralQueue:
    if node.parent:
        limit = {name: whole[name] + most for name, most in node.borrowing.items()}
    else:
        # Without a cohort there is nothing to borrow.
        limit = dict(whole)
    return NeutralQueue(
        node.name,
        "" if node.parent == ROOT else node.parent,
        {name: amount for name, amount in whole.items() if amount},
        limit,
        guarantee={name: node.nominal[name] - most for name, most in node.lending.items() if node.nominal[name] > most},
        weight=node.weight,
        is_first_come=queue is not None and queue.spec.queueing_strategy == "StrictFIFO",
        is_held=queue is not None and queue.spec.stop_policy != "None",
        locals=locals_,
    )


def _whole(nodes: Mapping[str, _ReadQueue], name: str, seen: frozenset[str]) -> dict[str, int]:
    """The quota with that of all below; a cycle of parents ends where it closes."""
    total = dict(nodes[name].nominal)
    for child in nodes.values():
        if child.parent == name and child.name not in seen:
            for resource, amount in _whole(nodes, child.name, seen | {name}).items():
                total[resource] = total.get(resource, 0) + amount
    return total


def _sums(groups: Iterable[ResourceGroup]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Nominal quotas, borrowing and lending limits over all flavors. A limit holds only if all flavors have one."""
    nominal: dict[str, int] = {}
    limits: tuple[dict[str, int], dict[str, int]] = ({}, {})
    open_: tuple[set[str], set[str]] = (set(), set())
    for group in groups:
        for flavor in group.flavors:
            for each in flavor.resources:
                _add(nominal, each.name, each.nominal_quota)
                for sums, free, said in zip(limits, open_, (each.borrowing_limit, each.lending_limit), strict=True):
                    if said is None:
                        free.add(each.name)
                    else:
                        _add(sums, each.name, said)
    borrowing, lending = ({k: v for k, v in s.items() if k not in o} for s, o in zip(limits, open_, strict=True))
    return nominal, borrowing, lending


def _add(sums: dict[str, int], name: str, amount: Quantity) -> None:
    sums[name] = sums.get(name, 0) + in_engine_units(amounts({name: amount}))[name]


def _flavor_losses(objects: KueueObjects) -> list[str]:
    losses: list[str] = []
    used = {
        flavor.name
        for groups in (
            *(queue.spec.resource_groups for queue in objects.cluster_queues),
            *(cohort.spec.resource_groups for cohort in objects.cohorts),
        )
        for group in groups
        for flavor in group.flavors
    }
    if len(used) > 1:
        losses.append(
            f"quotas are added up over the flavors {', '.join(sorted(used))}: only Kueue has quotas by flavor"
        )
    for flavor in objects.flavors:
        spec, name = flavor.spec, flavor.metadata.name
        parts = {
            "nodeLabels": spec.node_labels,
            "nodeTaints": spec.node_taints,
            "tolerations": spec.tolerations,
            "topologyName": spec.topology_name,
        }
        said = [field for field, value in parts.items() if value]
        if said:
            losses.append(f"flavor {name}: {', '.join(said)} are left out; write them into the pods of its jobs")
    return losses


def _queue_losses(queues: Iterable[ClusterQueue]) -> list[str]:
    losses: list[str] = []
    for queue in queues:
        spec, name = queue.spec, queue.metadata.name
        parts = {
            "namespaceSelector": spec.namespace_selector is not None
            and msgspec.to_builtins(spec.namespace_selector) not in ({}, {"matchLabels": {}, "matchExpressions": []}),
            "admissionChecksStrategy": bool(spec.admission_checks_strategy.admission_checks),
            "admissionScope": spec.admission_scope is not None,
            "preemption.borrowWithinCohort": spec.preemption.borrow_within_cohort is not None,
            "concurrentAdmissionPolicy": spec.concurrent_admission_policy is not None,
        }
        losses += [f"cluster queue {name}: {field} is left out" for field, is_said in parts.items() if is_said]
        preemption = spec.preemption
        if preemption.within_cluster_queue == "Never":
            losses.append(
                f"cluster queue {name}: its workloads may preempt each other by priority after the conversion"
            )
        if preemption.reclaim_within_cohort == "Never" and (spec.cohort_name or spec.cohort):
            losses.append(f"cluster queue {name}: it may reclaim from its cohort after the conversion")
    return losses


def to_kueue(source: Queues, namespace: str) -> Written:
    losses: list[str] = []
    objects: list[dict[str, object]] = [
        {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": {"name": FLAVOR}, "spec": {}}
    ]
    resources = source.resources()
    if not any(queue.quota or queue.unlimited for queue in source.queues) and source.queues:
        losses.append(f"the queues declare no quotas; give cohort {ROOT} the nominalQuota that they divide by weight")
    has_root = len(source.children("")) > 1
    if has_root:
        objects.append({"apiVersion": _API, "kind": "Cohort", "metadata": {"name": ROOT}, "spec": {}})
    locals_: list[dict[str, object]] = []
    for queue in source.queues:
        losses += [*fractions(queue), *_not_in_kueue(queue)]
        children = source.children(queue.name)
        parent = queue.parent or (ROOT if has_root else "")
        group = _group(queue, children, resources, losses, has_parent=bool(parent))
        spec: dict[str, object] = {"resourceGroups": [group]} if group else {}
        if queue.weight is not None and queue.weight != 1:
            spec["fairSharing"] = {"weight": str(Quantity.of_milli(round(queue.weight * 1000)))}
        if children:
            spec |= {"parentName": parent} if parent else {}
            objects.append({"apiVersion": _API, "kind": "Cohort", "metadata": {"name": queue.name}, "spec": spec})
            continue
        spec |= {"cohortName": parent} if parent else {}
        spec["namespaceSelector"] = {}
        spec["preemption"] = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
        if queue.is_first_come:
            spec["queueingStrategy"] = "StrictFIFO"
        if queue.is_held:
            spec["stopPolicy"] = "Hold"
        objects.append({"apiVersion": _API, "kind": "ClusterQueue", "metadata": {"name": queue.name}, "spec": spec})
        for of, name in queue.locals or ((namespace, queue.name),):
            local = {"name": name, "namespace": of}
            locals_.append(
                {"apiVersion": _API, "kind": "LocalQueue", "metadata": local, "spec": {"clusterQueue": queue.name}}
            )
        if not queue.locals:
            losses.append(f"jobs in other namespaces than {namespace} need a LocalQueue for cluster queue {queue.name}")
    return Written([*objects, *locals_], losses)


def _group(
    queue: NeutralQueue,
    children: Sequence[NeutralQueue],
    resources: Sequence[str],
    losses: list[str],
    *,
    has_parent: bool,
) -> dict[str, object] | None:
    """The quotas of one flavor: of a cohort what comes on top of its members' quotas."""
    entries: list[dict[str, str]] = []
    for name in resources:
        below = sum(child.quota.get(name, 0) for child in children)
        own = queue.quota.get(name, 0) - below
        if own < 0:
            if name in queue.quota:
                losses.append(f"queue {queue.name}: the quotas of its children add up to more {name} than its own")
            own = 0
        limit = queue.limit.get(name)
        if children and not own and (limit is None or not has_parent):
            continue
        entry = {"name": name, "nominalQuota": quantity(name, own)}
        if limit is not None and has_parent:
            entry["borrowingLimit"] = quantity(name, max(limit - max(below + own, 0), 0))
        if name in queue.guarantee:
            if children:
                losses.append(
                    f"queue {queue.name}: the guarantee of {name} is left out; a cohort lends all that it has"
                )
            else:
                entry["lendingLimit"] = quantity(name, max(own - queue.guarantee[name], 0))
        entries.append(entry)
    if not entries:
        return None
    covered = [entry["name"] for entry in entries]
    return {"coveredResources": covered, "flavors": [{"name": FLAVOR, "resources": entries}]}


def _not_in_kueue(queue: NeutralQueue) -> list[str]:
    found: list[str] = []
    if queue.priority is not None:
        found.append(f"queue {queue.name}: priority {queue.priority} is left out; Kueue serves queues by their share")
    if not queue.is_reclaimable:
        found.append(f"queue {queue.name}: other queues may reclaim what it borrows")
    found += [
        f"queue {queue.name}: the unlimited quota of {name} is left out; give cohort {ROOT} that quota"
        for name in sorted(queue.unlimited)
    ]
    return found
