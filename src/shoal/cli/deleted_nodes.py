"""Finds pods that are bound to a node that does not exist, or no longer.

A cluster deletes such pods within minutes of the node. Until then they do not run, and no replacement is placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.api.decode import Document
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.engine.events import Event, PodBound
from shoal.units.near_texts import meant_words


def on_lost_nodes(documents: Iterable[Document]) -> dict[str, str]:
    """By the key of a pod, in words where it was. A pod that some cluster made has a uid, and so had its node."""
    pods: list[Pod] = []
    nodes: set[str] = set()
    for each in documents:
        if isinstance(each.value, Node):
            nodes.add(each.value.metadata.name)
        elif isinstance(each.value, Pod) and each.value.spec.node_name and not each.value.is_finished():
            pods.append(each.value)
    return {pod.metadata.key: _where(pod, nodes) for pod in pods if pod.spec.node_name not in nodes}


def lost_of_gang(lost: Mapping[str, str], gang: str, events: Iterable[Event]) -> list[str]:
    """Returns a line for each pod of the gang."""
    return [
        f"{event.key} {lost[event.key]}"
        for event in events
        if isinstance(event, PodBound) and event.who.group == gang and event.key in lost
    ]


def _where(pod: Pod, nodes: Iterable[str]) -> str:
    node = pod.spec.node_name
    if not pod.metadata.uid:
        return f"is on {node}, which is not among the manifests"
    if pod.status.phase == "Pending":
        return f"is bound to {node}, which does not exist{meant_words(node, nodes)}"
    return f"was on {node}, which is gone"
