"""Pods carry the zone and region of their node, so that a container can read them by the downward API."""

from __future__ import annotations

from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

_LABELS = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


class PodTopologyLabels(AdmissionPlugin):
    """Works on bindings, whose labels become the pod's, and on pods that are made with their node."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home == POD and subresource in ("", "binding")

    def mutate(self, admission: AdmissionAttributes) -> None:
        obj = admission.obj
        name = _node_of(obj or {}, admission.call.subresource)
        node = self._reader.get("", "nodes", "", name) if name else None
        if obj is None or node is None:
            return
        labels = node["metadata"].get("labels") or {}
        found = {key: labels[key] for key in _LABELS if key in labels}
        if found:
            metadata = obj.setdefault("metadata", {})
            metadata["labels"] = {**found, **(metadata.get("labels") or {})}


def _node_of(obj: Obj, subresource: str) -> str:
    if not subresource:
        return str((obj.get("spec") or {}).get("nodeName") or "")
    target = obj.get("target") or {}
    return str(target.get("name") or "") if target.get("kind") == "Node" else ""
