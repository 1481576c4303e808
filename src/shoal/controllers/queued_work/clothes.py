"""What an admission puts on the pods of each set: node labels and tolerations of their flavors, what checks add, and
whose they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.controllers.queued_work.fields import put_or_drop, texts
from shoal.controllers.queued_work.words import POD_SET, SLICE_NAME, TO_CLUSTER_QUEUE, TO_LOCAL_QUEUE, WORKLOAD
from shoal.store.queues.job_parts import Obj, dig
from shoal.units.errors import UserError, Where

TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""Keeps a pod until it is known into which of its workload's domains it goes."""
OWN_LABELS = frozenset({POD_SET, TO_CLUSTER_QUEUE, TO_LOCAL_QUEUE})
OWN_ANNOTATIONS = frozenset({WORKLOAD, SLICE_NAME})
_LONGEST_LABEL = 63
FlavorLook = Callable[[str], Obj | None]


class MisfitError(UserError):
    """Pods that say one thing and an admission that says another: trying again would end the same way."""


class Clothes(msgspec.Struct, frozen=True):
    name: str
    count: int
    labels: dict[str, str]
    annotations: dict[str, str]
    node_selector: dict[str, str]
    tolerations: list[Obj]
    gates: list[Obj]
    domains: TopologyAssignment | None = None
    """Each pod belongs into one of them; with a gate where it does not know yet which."""


def clothes_of(workload: Obj, flavors: FlavorLook, schedulers: frozenset[str]) -> list[Clothes] | None:
    """By pod set, in the order of the workload; None while a flavor is missing."""
    assigned = {str(one.get("name")): one for one in dig(workload, ("status", "admission", "podSetAssignments")) or ()}
    found = []
    for pod_set in dig(workload, ("spec", "podSets")) or ():
        assignment = assigned.get(str(pod_set.get("name", "main")))
        if assignment is None:
            return None
        selector: dict[str, str] = {}
        tolerations: list[Obj] = []
        for name in dict.fromkeys((assignment.get("flavors") or {}).values()):
            flavor = flavors(name)
            if flavor is None:
                return None
            selector = {**texts(flavor, "spec", "nodeLabels"), **selector}
            tolerations += dig(flavor, ("spec", "tolerations")) or ()
        gates: list[Obj] = []
        domains = None
        if dig(pod_set, ("template", "spec", "schedulerName")) not in schedulers and _has_domains(assignment):
            domain = _one_domain(assignment)
            selector = {**selector, **domain}
            # Of several domains each pod gets its own, by whoever opens the gate.
            if not domain:
                gates, domains = [{"name": TOPOLOGY_GATE}], _domains(assignment)
        one = _plain(workload, pod_set, selector, tolerations, assignment.get("count"))
        found.append(_checked(workload, msgspec.structs.replace(one, gates=gates, domains=domains)))
    return found


def _plain(workload: Obj, pod_set: Obj, selector: dict[str, str], tolerations: list[Obj], count: Any) -> Clothes:
    name = str(pod_set.get("name", "main"))
    labels = {POD_SET: name}
    queues: tuple[tuple[str, Any], ...] = (
        (TO_LOCAL_QUEUE, dig(workload, ("spec", "queueName"))),
        (TO_CLUSTER_QUEUE, dig(workload, ("status", "admission", "clusterQueue"))),
    )
    labels.update({key: str(queue) for key, queue in queues if queue and len(queue) <= _LONGEST_LABEL})
    return Clothes(
        name,
        count if isinstance(count, int) else int(pod_set.get("count", 1)),
        labels,
        {WORKLOAD: str(workload["metadata"]["name"])},
        selector,
        tolerations,
        [],
    )


def _has_domains(assignment: Obj) -> bool:
    return bool(dig(assignment, ("topologyAssignment", "levels")))


def _domains(assignment: Obj) -> TopologyAssignment | None:
    try:
        found = msgspec.convert(assignment["topologyAssignment"], TopologyAssignment)
        found.check(Where(path="status.admission"))
    except (msgspec.ValidationError, UserError) as error:
        raise MisfitError(f"the domains of the admission cannot be read: {error}") from error
    return found


def _one_domain(assignment: Obj) -> dict[str, str]:
    """All pods belong into one domain: any scheduler can be told so."""
    levels: list[str] = dig(assignment, ("topologyAssignment", "levels")) or []
    slices: list[Obj] = dig(assignment, ("topologyAssignment", "slices")) or []
    if len(slices) == 1 and slices[0].get("domainCount") == 1:
        per_level: list[Obj] = slices[0].get("valuesPerLevel") or []
        values = [_only(one) for one in per_level]
        if len(values) == len(levels) and None not in values:
            return dict(zip(levels, (str(value) for value in values), strict=True))
    domains: list[Obj] = dig(assignment, ("topologyAssignment", "domains")) or []
    if len(domains) == 1 and len(domains[0].get("values") or ()) == len(levels):
        return dict(zip(levels, domains[0]["values"], strict=True))
    return {}


def _only(level: Obj) -> str | None:
    if level.get("universal") is not None:
        return str(level["universal"])
    individual = level.get("individual") or {}
    roots: list[str] = individual.get("roots") or []
    if len(roots) > 1:
        return None
    return f"{individual.get('prefix') or ''}{roots[0] if roots else ''}{individual.get('suffix') or ''}"


def _checked(workload: Obj, clothes: Clothes) -> Clothes:
    """With what the admission checks add."""
    for check in dig(workload, ("status", "admissionChecks")) or ():
        for update in check.get("podSetUpdates") or ():
            if update.get("name") != clothes.name:
                continue
            try:
                clothes = with_more(clothes, update)
            except MisfitError as error:
                raise MisfitError(f'in admission check "{check.get("name")}": {error.what}') from error
    return clothes


def with_more(clothes: Clothes, update: Obj) -> Clothes:
    return msgspec.structs.replace(
        clothes,
        labels=joined(clothes.labels, texts(update, "labels"), "labels"),
        annotations=joined(clothes.annotations, texts(update, "annotations"), "annotations"),
        node_selector=joined(clothes.node_selector, texts(update, "nodeSelector"), "nodeSelector"),
        tolerations=together(clothes.tolerations, update.get("tolerations") or ()),
    )


def joined(
    first: Mapping[str, str], second: Mapping[str, str], what: str, ours: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Both; the second has its way only with keys that are `ours`."""
    for key, value in second.items():
        if key not in ours and first.get(key, value) != value:
            words = f"conflict for key={key}, value1={first[key]}, value2={value}"
            raise MisfitError(f"invalid admission check PodSetUpdate: conflict for {what}: {words}")
    return {**first, **second}


def together(first: Sequence[Obj], second: Sequence[Obj]) -> list[Obj]:
    found = list(first)
    found += [one for one in second if one not in found]
    return found


def bare(template: Obj, clothes: Clothes, written: Obj) -> Obj:
    """The template without what was put on it; `written` is its like, as somebody else wrote it."""
    meta, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
    for holder, key, worn, way in (
        (meta, "labels", clothes.labels, ("metadata", "labels")),
        (meta, "annotations", clothes.annotations, ("metadata", "annotations")),
        (spec, "nodeSelector", clothes.node_selector, ("spec", "nodeSelector")),
    ):
        own = texts(written, *way)
        kept = {
            name: value
            for name, value in (holder.get(key) or {}).items()
            if name in own or (name not in worn and name not in OWN_LABELS | OWN_ANNOTATIONS)
        }
        put_or_drop(holder, key, kept)
    own_tolerations = dig(written, ("spec", "tolerations")) or ()
    kept_tolerations = [
        one for one in spec.get("tolerations") or () if one not in clothes.tolerations or one in own_tolerations
    ]
    put_or_drop(spec, "tolerations", kept_tolerations)
    own_gates = dig(written, ("spec", "schedulingGates")) or ()
    kept_gates = [one for one in spec.get("schedulingGates") or () if one not in clothes.gates or one in own_gates]
    put_or_drop(spec, "schedulingGates", kept_gates)
    return {**template, "metadata": meta, "spec": spec}
