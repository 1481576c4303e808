"""Makes the Workload objects of pods and serving kinds. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.controllers.queued_pods.kueue_names import GATE
from shoal.controllers.queued_work.kueue_names import IN_USE, MAX_EXEC_TIME, POD_SET_LABEL, WORKLOAD_ANNOTATION
from shoal.controllers.queued_work.topology_requests import topology_request
from shoal.units.numbers import whole_of

Obj = dict[str, Any]
_NOISE = ("kubectl.kubernetes.io/last-applied-configuration", WORKLOAD_ANNOTATION)


class PodSetDraft(msgspec.Struct, frozen=True):
    name: str
    template: Obj
    count: int
    index_label: str = ""
    """The label with the index of a pod."""
    min_count: int | None = None
    """With fewer pods it is not admitted; None: with `count` pods or not at all."""

    def to_api(self) -> Obj:
        """Raises UserError if the topology request of its template is invalid."""
        made: Obj = {"name": self.name, "count": self.count, "template": self.template}
        if self.min_count is not None:
            made["minCount"] = self.min_count
        request = topology_request(self.template, self.index_label)
        return made | ({"topologyRequest": request} if request else {})


class WorkloadPriority(msgspec.Struct, frozen=True):
    """The priority of a Workload and its class."""

    value: int = 0
    group: str = ""
    kind: str = ""
    name: str = ""

    def to_api(self) -> Obj:
        if not self.name:
            return {"priority": self.value}
        return {
            "priority": self.value,
            "priorityClassRef": {"group": self.group, "kind": self.kind, "name": self.name},
        }


class WorkloadDraft(msgspec.Struct, frozen=True):
    """A Workload to be created."""

    namespace: str
    name: str
    queue: str
    pod_sets: Sequence[PodSetDraft]
    owners: Sequence[Obj]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    priority: WorkloadPriority
    max_exec_time: str = ""

    def to_api(self) -> Obj:
        meta: Obj = {
            "name": self.name,
            "namespace": self.namespace,
            "finalizers": [IN_USE],
            "ownerReferences": list(self.owners),
        }
        if self.labels:
            meta["labels"] = dict(self.labels)
        if self.annotations:
            meta["annotations"] = dict(self.annotations)
        spec: Obj = {"podSets": [one.to_api() for one in self.pod_sets], "active": True, **self.priority.to_api()}
        if self.queue:
            spec["queueName"] = self.queue
        if max_exec_time := whole_of(self.max_exec_time):
            spec["maximumExecutionTimeSeconds"] = max_exec_time
        return {"metadata": meta, "spec": spec}


def max_exec_time_of(labels: Mapping[str, str]) -> str:
    return labels.get(MAX_EXEC_TIME, "")


def template_of(pod: Mapping[str, Any]) -> Obj:
    """The template of a pod as it was before it was held; `pod` may be a pod template."""
    meta = pod.get("metadata") or {}
    spec = dict(pod.get("spec") or {})
    gates = [gate for gate in spec.pop("schedulingGates", None) or () if gate.get("name") != GATE]
    if gates:
        spec["schedulingGates"] = gates
    spec.pop("nodeName", None)
    kept: Obj = {}
    if meta.get("labels"):
        kept["labels"] = {name: value for name, value in meta["labels"].items() if name != POD_SET_LABEL}
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name not in _NOISE}
    if annotations:
        kept["annotations"] = annotations
    return {"metadata": kept, "spec": spec}


def owner_reference(kind: str, api_version: str, name: str, uid: str) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


def as_controller(reference: Obj) -> Obj:
    return {**reference, "controller": True, "blockOwnerDeletion": True}
