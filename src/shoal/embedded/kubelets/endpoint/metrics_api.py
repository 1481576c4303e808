"""Computes metrics.k8s.io/v1beta1 objects from the current usage of the nodes, for `kubectl top`.

`metrics_routes.py` serves them. As with metrics-server, unreachable nodes have no metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.embedded.apiserver.status import bad_request
from shoal.embedded.kubelets.endpoint.summary import rfc3339
from shoal.embedded.kubelets.node_view import MeasuredNode, MeasuredNodes, Obj, Usage
from shoal.units.errors import UserError

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
API_VERSION = f"{GROUP}/{VERSION}"
_WINDOW = "15s"
_FIELDS = ("metadata.name", "metadata.namespace")


class LabelsOf(Protocol):
    def __call__(self, node: str, /) -> Mapping[str, str]:
        """The labels of the Node object."""
        ...


class Chosen(msgspec.Struct, frozen=True):
    """The requested objects of a list."""

    labels: Selector = Selector.EVERYTHING
    fields: tuple[tuple[str, str, bool], ...] = ()

    def takes(self, obj: Obj) -> bool:
        metadata = obj["metadata"]
        for field, value, is_equal in self.fields:
            if (metadata.get(field.removeprefix("metadata."), "") == value) is not is_equal:
                return False
        return self.labels.matches(metadata.get("labels") or {})


def chosen(query: Mapping[str, str]) -> Chosen:
    try:
        labels = parse_label_selector(query.get("labelSelector", ""))
    except UserError as error:
        raise bad_request(f"unable to parse requirement: {error.what}") from None
    return Chosen(labels, tuple(_terms(query.get("fieldSelector", ""))))


def _terms(text: str) -> Iterator[tuple[str, str, bool]]:
    for piece in filter(None, text.split(",")):
        mark = next((one for one in ("!=", "==", "=") if one in piece), "")
        field, _, value = piece.partition(mark) if mark else (piece, "", "")
        if not mark:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{piece}'")
        if field not in _FIELDS:
            raise bad_request(f'"{field}" is not a known field selector: only "{_FIELDS[0]}", "{_FIELDS[1]}"')
        yield field, value, mark != "!="


class MetricsApi:
    def __init__(self, nodes: MeasuredNodes, labels_of: LabelsOf) -> None:
        self._nodes = nodes
        self._labels_of = labels_of

    def node_metrics(self, now_s: float) -> Iterator[Obj]:
        for node in self._reachable():
            labels = dict(self._labels_of(node.name))
            metadata = {"name": node.name, "creationTimestamp": rfc3339(now_s), "labels": labels}
            yield _with_time("NodeMetrics", metadata, now_s) | {"usage": _usage(node.usage())}

    def pod_metrics(self, namespace: str, now_s: float) -> Iterator[Obj]:
        """The metrics of pods in one namespace, or in all."""
        for node in self._reachable():
            for pod, used in node.pod_usage():
                found = pod["metadata"]
                if namespace and found["namespace"] != namespace:
                    continue
                metadata = {"name": found["name"], "namespace": found["namespace"]}
                metadata |= {"creationTimestamp": rfc3339(now_s), "labels": dict(found.get("labels") or {})}
                containers = [{"name": name, "usage": _usage(one)} for name, one in used.items()]
                yield _with_time("PodMetrics", metadata, now_s) | {"containers": containers}

    def _reachable(self) -> Iterator[MeasuredNode]:
        for name in self._nodes.names():
            node = self._nodes.node(name)
            if node is not None and node.is_reachable():
                yield node


def _with_time(kind: str, metadata: Obj, now_s: float) -> Obj:
    heading = {"kind": kind, "apiVersion": API_VERSION, "metadata": metadata}
    return {**heading, "timestamp": rfc3339(now_s), "window": _WINDOW}


def _usage(used: Usage) -> Obj:
    return {"cpu": f"{used.cpu_milli}m", "memory": f"{used.memory_bytes // 1024}Ki"}


def group_of(name: str, versions: Sequence[str]) -> Obj:
    """The discovery document of a group; the first version is the preferred one."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list() -> Obj:
    def resource(name: str, kind: str, *, namespaced: bool) -> Obj:
        found = {"name": name, "singularName": "", "namespaced": namespaced, "kind": kind}
        return {**found, "verbs": ["get", "list"]}

    resources = [
        resource("nodes", "NodeMetrics", namespaced=False),
        resource("pods", "PodMetrics", namespaced=True),
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION, "resources": resources}
