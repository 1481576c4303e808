"""Indexes pods by the node that they are bound to, and decodes the fields that the controllers of nodes read."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shoal.client.index import Index
from shoal.client.informers import Informers
from shoal.client.item import Item, Obj
from shoal.client.kind import PODS

_INDEX = "spec.nodeName"


class _Bound(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _NodeOfPod(msgspec.Struct, gc=False):
    spec: _Bound


_decoder = msgspec.json.Decoder(_NodeOfPod)


def node_of(item: Item) -> str:
    return _decoder.decode(item.data).spec.node_name


def _nodes(item: Item) -> Iterable[str]:
    name = node_of(item)
    return (name,) if name else ()


def pods_by_node(informers: Informers) -> Index:
    return informers.of(PODS).index(_INDEX, _nodes)


def with_condition(pod: Obj, reason: str, message: str, now: str) -> list[Obj] | None:
    """The conditions of an evicted pod, with DisruptionTarget; None if the pod has that condition already."""
    present = (pod.get("status") or {}).get("conditions") or []
    before = next((one for one in present if one["type"] == "DisruptionTarget"), None)
    if before is not None and (before["status"], before.get("reason"), before.get("message")) == (
        "True",
        reason,
        message,
    ):
        return None
    since = before["lastTransitionTime"] if before is not None and before["status"] == "True" else now
    reported: Obj = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}
    reported |= {"lastProbeTime": None, "lastTransitionTime": since}
    if pod["metadata"].get("generation"):
        reported["observedGeneration"] = pod["metadata"]["generation"]
    return [one for one in present if one["type"] != "DisruptionTarget"] + [reported]
