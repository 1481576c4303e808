"""A Kueue object of one version as the other version writes it: v1beta1 and v1beta2, both ways, on plain objects.

What both versions can hold is kept, whatever it is: only names that changed are touched, and unknown fields
pass through. What the other version has no place for is left out: `pendingWorkloadsStatus` of cluster queues,
`status.flavors` of local queues, `retryDelayMinutes` of checks. The object that is given is not changed.

Checks that v1beta1 lists by name come back as such a list, although v1beta2 has one form for names and rules: an
annotation keeps that. In the other form, the same object applied again would count as a change of its spec, and its
generation would grow each time.

Rejected: going through the typed values. They leave out what Shoal does not read, so an object stored in one version
and asked for in the other would come back poorer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.api.kueue.packing import packed, unpacked
from shoal.units.errors import UserError, Where, excerpt

Plain = dict[str, Any]

_VERSION_FIELD = Where(path="apiVersion")

GROUP = "kueue.x-k8s.io"
V1BETA1 = f"{GROUP}/v1beta1"
V1BETA2 = f"{GROUP}/v1beta2"
_ALSO = {"Topology": (f"{GROUP}/v1alpha1",)}
"""Older versions by kinds that have them; they differ in nothing but their name."""

_MAY_STOP = "MayStopSearch"
_OLD_WORDS = {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}
_PRIORITY_SOURCES = {
    f"{GROUP}/workloadpriorityclass": {"group": GROUP, "kind": "WorkloadPriorityClass"},
    "scheduling.k8s.io/priorityclass": {"group": "scheduling.k8s.io", "kind": "PriorityClass"},
}
_POD_PRIORITY_CLASS = "scheduling.k8s.io/priorityclass"
_CHECKS = "admissionChecks"
_STRATEGY = "admissionChecksStrategy"
BY_NAME = "shoal.dev/checks-by-name"
"""An annotation of v1beta2: the checks were a list of names in v1beta1."""
_CLUSTER_SOURCES = ("kubeConfig", "clusterProfileRef")
_RENAMED = {
    "ClusterQueue": ("spec", "cohort", "cohortName"),
    "LocalQueue": ("status", "flavorUsage", "flavorsUsage"),
    "Workload": ("status", "accumulatedPastExexcutionTimeSeconds", "accumulatedPastExecutionTimeSeconds"),
}
"""By kind: the part of the object, and the name of its renamed field in v1beta1 and in v1beta2."""


def convert(raw: Plain, to_version: str) -> Plain:
    """`to_version` with its group, as a conversion webhook is asked for it."""
    known = {V1BETA1, V1BETA2, *_ALSO.get(str(raw.get("kind")), ())}
    if to_version not in known:
        fix = f"supported are {V1BETA1} and {V1BETA2}"
        raise UserError(f"no conversion to {excerpt(to_version)}", where=_VERSION_FIELD, fix=fix)
    found = raw.get("apiVersion")
    if found not in known:
        raise UserError(f"no conversion from {excerpt(str(found))}", where=_VERSION_FIELD)
    if found == to_version:
        return dict(raw)
    table = _UP if to_version == V1BETA2 else _DOWN
    step = table.get(str(raw.get("kind")))
    converted = dict(raw) if step is None else step(raw)
    return {**converted, "apiVersion": to_version}


def differs(kind: str) -> bool:
    """Whether the versions of a kind differ in more than their name."""
    return kind in _UP or kind in _DOWN


def cluster_queue_up(raw: Plain) -> Plain:
    raw = _renamed_up("ClusterQueue", raw)
    spec = _part(raw, "spec")
    fungibility = _part(spec, "flavorFungibility")
    for name, old in _OLD_WORDS.items():
        if fungibility.get(name) == old:
            fungibility[name] = _MAY_STOP
    _name_checks(spec)
    _part(raw, "status").pop("pendingWorkloadsStatus", None)
    return raw


def _cluster_queue_up(raw: Plain) -> Plain:
    """For who may want the older version back."""
    converted = cluster_queue_up(raw)
    spec = raw.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get(_CHECKS), list) and not spec.get(_STRATEGY):
        _put_annotation(converted, BY_NAME, "true")
    return converted


def cluster_queue_down(raw: Plain) -> Plain:
    raw = _renamed_down("ClusterQueue", raw)
    spec = _part(raw, "spec")
    fungibility = _part(spec, "flavorFungibility")
    for name, old in _OLD_WORDS.items():
        if fungibility.get(name) == _MAY_STOP:
            fungibility[name] = old
    if _take_annotation(raw, BY_NAME) is not None:
        _list_checks(spec)
    return raw


def local_queue_up(raw: Plain) -> Plain:
    raw = _renamed_up("LocalQueue", raw)
    _part(raw, "status").pop("flavors", None)
    return raw


def local_queue_down(raw: Plain) -> Plain:
    return _renamed_down("LocalQueue", raw)


def workload_up(raw: Plain) -> Plain:
    raw = _renamed_up("Workload", raw)
    _refer_to_class(_part(raw, "spec"))
    _each_assignment(_part(raw, "status"), packed, "domains")
    return raw


def workload_down(raw: Plain) -> Plain:
    raw = _renamed_down("Workload", raw)
    spec = _part(raw, "spec")
    reference = spec.pop("priorityClassRef", None)
    if isinstance(reference, dict):
        spec["priorityClassName"] = reference.get("name", "")
        kind = reference.get("kind")
        spec["priorityClassSource"] = next((s for s, r in _PRIORITY_SOURCES.items() if r["kind"] == kind), str(kind))
    _each_assignment(_part(raw, "status"), unpacked, "slices")
    return raw


def admission_check_up(raw: Plain) -> Plain:
    raw = dict(raw)
    _part(raw, "spec").pop("retryDelayMinutes", None)
    return raw


def _cluster_up(raw: Plain) -> Plain:
    """MultiKueueCluster."""
    raw = dict(raw)
    spec = _part(raw, "spec")
    found = {name: spec.pop(name) for name in _CLUSTER_SOURCES if name in spec}
    if found:
        spec["clusterSource"] = {**_part(spec, "clusterSource"), **found}
    return raw


def _cluster_down(raw: Plain) -> Plain:
    raw = dict(raw)
    spec = _part(raw, "spec")
    source = _part(spec, "clusterSource")
    spec.update({name: source.pop(name) for name in _CLUSTER_SOURCES if name in source})
    if not source:
        spec.pop("clusterSource", None)
    return raw


_Step = Callable[[Plain], Plain]
_UP: dict[str, _Step] = {
    "ClusterQueue": _cluster_queue_up,
    "LocalQueue": local_queue_up,
    "Workload": workload_up,
    "AdmissionCheck": admission_check_up,
    "MultiKueueCluster": _cluster_up,
}
_DOWN: dict[str, _Step] = {
    "ClusterQueue": cluster_queue_down,
    "LocalQueue": local_queue_down,
    "Workload": workload_down,
    "MultiKueueCluster": _cluster_down,
}


def _part(raw: Plain, name: str) -> Plain:
    """A copy of a part, put in its place; an unattached empty one if the part is absent."""
    found = raw.get(name)
    if not isinstance(found, dict):
        return {}
    raw[name] = dict(found)
    part: Plain = raw[name]
    return part


def _put_annotation(raw: Plain, name: str, value: str) -> None:
    metadata = _part(raw, "metadata")
    annotations = metadata.get("annotations") or {}
    if isinstance(annotations, dict):
        metadata["annotations"] = {**annotations, name: value}


def _take_annotation(raw: Plain, name: str) -> Any:
    """Its value, and the object is without it."""
    metadata = _part(raw, "metadata")
    annotations = _part(metadata, "annotations")
    found = annotations.pop(name, None)
    if found is not None and not annotations:
        del metadata["annotations"]
    return found


def _list_checks(spec: Plain) -> None:
    """Rules for all flavors become checks by name alone, where all are such."""
    strategy = spec.get(_STRATEGY)
    rules = strategy.get(_CHECKS) if isinstance(strategy, dict) and set(strategy) == {_CHECKS} else None
    if isinstance(rules, list) and all(isinstance(rule, dict) and set(rule) == {"name"} for rule in rules):
        spec[_CHECKS] = [rule["name"] for rule in rules]
        del spec[_STRATEGY]


def _name_checks(spec: Plain) -> None:
    """Checks by name alone become rules for all flavors."""
    names, strategy = spec.get(_CHECKS), spec.get(_STRATEGY) or {}
    rules = strategy.get(_CHECKS) or [] if isinstance(strategy, dict) else None
    if not isinstance(names, list) or not isinstance(rules, list):
        return
    known = [rule.get("name") for rule in rules if isinstance(rule, dict)]
    spec[_STRATEGY] = {**strategy, _CHECKS: rules + [{"name": name} for name in names if name not in known]}
    del spec[_CHECKS]


def _refer_to_class(spec: Plain) -> None:
    """Before there were two kinds of classes there was no source, and the class was that of the pods."""
    name = spec.pop("priorityClassName", None)
    source = spec.pop("priorityClassSource", None) or _POD_PRIORITY_CLASS
    if not name:
        return
    if not isinstance(source, str) or source not in _PRIORITY_SOURCES:
        fix = f"supported values are {', '.join(_PRIORITY_SOURCES)}"
        here = Where(path="spec.priorityClassSource")
        raise UserError(f"unsupported value {excerpt(str(source))}", where=here, fix=fix)
    spec["priorityClassRef"] = {**_PRIORITY_SOURCES[source], "name": name}


def _renamed_up(kind: str, raw: Plain) -> Plain:
    """A copy of the object with the field's name of v1beta2."""
    part, old, new = _RENAMED[kind]
    return _renamed(raw, part, old, new)


def _renamed_down(kind: str, raw: Plain) -> Plain:
    part, old, new = _RENAMED[kind]
    return _renamed(raw, part, new, old)


def _renamed(raw: Plain, name: str, before: str, after: str) -> Plain:
    raw = dict(raw)
    part = _part(raw, name)
    if before in part:
        part[after] = part.pop(before)
    return raw


def _each_assignment(status: Plain, change: Callable[[Plain], Plain], mark: str) -> None:
    """`mark` is the field by which an assignment in need of the change is known."""
    admission = _part(status, "admission")
    pod_sets = admission.get("podSetAssignments")
    if not isinstance(pod_sets, list):
        return
    admission["podSetAssignments"] = pod_sets = [dict(one) if isinstance(one, dict) else one for one in pod_sets]
    for index, pod_set in enumerate(pod_sets):
        assignment = pod_set.get("topologyAssignment") if isinstance(pod_set, dict) else None
        if not isinstance(assignment, dict) or mark not in assignment:
            continue
        try:
            pod_set["topologyAssignment"] = change(assignment)
        except UserError as error:
            here = Where(path=f"status.admission.podSetAssignments[{index}].topologyAssignment")
            raise error.at(here.below(error.where.path)) from error
