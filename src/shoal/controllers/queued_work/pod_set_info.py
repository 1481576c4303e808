"""Computes what an admission adds to the pods of each pod set (Kueue's PodSetInfo): node labels and tolerations of the
flavors, updates of admission checks, and the labels that name the Workload and its queues.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.controllers.queued_work.fields import put_or_drop, string_map
from shoal.controllers.queued_work.kueue_names import (
    CLUSTER_QUEUE_LABEL,
    LOCAL_QUEUE_LABEL,
    POD_SET_LABEL,
    SLICE_NAME,
    WORKLOAD_ANNOTATION,
)
from shoal.store.queues.job_parts import Obj, dig
from shoal.units.errors import UserError, Where

TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
"""Holds a pod until one of its Workload's topology domains is chosen for it."""
OWN_LABELS = frozenset({POD_SET_LABEL, CLUSTER_QUEUE_LABEL, LOCAL_QUEUE_LABEL})
OWN_ANNOTATIONS = frozenset({WORKLOAD_ANNOTATION, SLICE_NAME})
_LONGEST_LABEL = 63
FlavorLookup = Callable[[str], Obj | None]


class PodSetConflictError(UserError):
    """The pod template conflicts with the admission; a retry cannot succeed."""


class PodSetInfo(msgspec.Struct, frozen=True):
    name: str
    count: int
    labels: dict[str, str]
    annotations: dict[str, str]
    node_selector: dict[str, str]
    tolerations: list[Obj]
    gates: list[Obj]
    domains: TopologyAssignment | None = None
    """The topology domains; each pod is assigned one of them, and has a gate until then."""


def pod_set_infos(workload: Obj, flavors: FlavorLookup, schedulers: frozenset[str]) -> list[PodSetInfo] | None:
    """One for each pod set, in the order of the Workload; None while a flavor is missing."""
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
            selector = {**string_map(flavor, "spec", "nodeLabels"), **selector}
            tolerations += dig(flavor, ("spec", "tolerations")) or ()
        gates: list[Obj] = []
        domains = None
        if dig(pod_set, ("template", "spec", "schedulerName")) not in schedulers and _has_domains(assignment):
            domain = _one_domain(assignment)
            selector = {**selector, **domain}
            # Each pod gets one of several domains when its gate is removed.
            if not domain:
                gates, domains = [{"name": TOPOLOGY_GATE}], _domains(assignment)
        one = _base_info(workload, pod_set, selector, tolerations, assignment.get("count"))
        found.append(_with_check_updates(workload, msgspec.structs.replace(one, gates=gates, domains=domains)))
    return found


def _base_info(workload: Obj, pod_set: Obj, selector: dict[str, str], tolerations: list[Obj], count: Any) -> PodSetInfo:
    name = str(pod_set.get("name", "main"))
    labels = {POD_SET_LABEL: name}
    queues: tuple[tuple[str, Any], ...] = (
        (LOCAL_QUEUE_LABEL, dig(workload, ("spec", "queueName"))),
        (CLUSTER_QUEUE_LABEL, dig(workload, ("status", "admission", "clusterQueue"))),
    )
    labels.update({key: str(queue) for key, queue in queues if queue and len(queue) <= _LONGEST_LABEL})
    return PodSetInfo(
        name,
        count if isinstance(count, int) else int(pod_set.get("count", 1)),
        labels,
        {WORKLOAD_ANNOTATION: str(workload["metadata"]["name"])},
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
        raise PodSetConflictError(f"the domains of the admission cannot be read: {error}") from error
    return found


def _one_domain(assignment: Obj) -> dict[str, str]:
    """The node selector of the domain if all pods are in one: any scheduler follows it. Otherwise empty."""
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


def _with_check_updates(workload: Obj, info: PodSetInfo) -> PodSetInfo:
    """The info with the updates of the admission checks."""
    for check in dig(workload, ("status", "admissionChecks")) or ():
        for update in check.get("podSetUpdates") or ():
            if update.get("name") != info.name:
                continue
            try:
                info = with_update(info, update)
            except PodSetConflictError as error:
                raise PodSetConflictError(f'in admission check "{check.get("name")}": {error.what}') from error
    return info


def with_update(info: PodSetInfo, update: Obj) -> PodSetInfo:
    return msgspec.structs.replace(
        info,
        labels=merge_maps(info.labels, string_map(update, "labels"), "labels"),
        annotations=merge_maps(info.annotations, string_map(update, "annotations"), "annotations"),
        node_selector=merge_maps(info.node_selector, string_map(update, "nodeSelector"), "nodeSelector"),
        tolerations=merge_lists(info.tolerations, update.get("tolerations") or ()),
    )


def merge_maps(
    first: Mapping[str, str], second: Mapping[str, str], what: str, ours: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Both maps; the second may overwrite only keys that are `ours`. Raises PodSetConflictError."""
    for key, value in second.items():
        if key not in ours and first.get(key, value) != value:
            conflict = f"conflict for key={key}, value1={first[key]}, value2={value}"
            raise PodSetConflictError(f"invalid admission check PodSetUpdate: conflict for {what}: {conflict}")
    return {**first, **second}


def merge_lists(first: Sequence[Obj], second: Sequence[Obj]) -> list[Obj]:
    found = list(first)
    found += [one for one in second if one not in found]
    return found


def restored_template(template: Obj, info: PodSetInfo, written: Obj) -> Obj:
    """The template without the injected fields; `written` is the template of the prebuilt Workload, whose own fields
    stay."""
    meta, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
    for holder, key, injected, way in (
        (meta, "labels", info.labels, ("metadata", "labels")),
        (meta, "annotations", info.annotations, ("metadata", "annotations")),
        (spec, "nodeSelector", info.node_selector, ("spec", "nodeSelector")),
    ):
        own = string_map(written, *way)
        kept = {
            name: value
            for name, value in (holder.get(key) or {}).items()
            if name in own or (name not in injected and name not in OWN_LABELS | OWN_ANNOTATIONS)
        }
        put_or_drop(holder, key, kept)
    own_tolerations = dig(written, ("spec", "tolerations")) or ()
    kept_tolerations = [
        one for one in spec.get("tolerations") or () if one not in info.tolerations or one in own_tolerations
    ]
    put_or_drop(spec, "tolerations", kept_tolerations)
    own_gates = dig(written, ("spec", "schedulingGates")) or ()
    kept_gates = [one for one in spec.get("schedulingGates") or () if one not in info.gates or one in own_gates]
    put_or_drop(spec, "schedulingGates", kept_gates)
    return {**template, "metadata": meta, "spec": spec}
