"""Defines the view of a daemon pod: its node, also before it is bound, and its template."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from shoal.api.node_affinity import NAME_FIELD, NodeAffinity
from shoal.client.item import Item
from shoal.client.owned_pods.pod_view import PodPlacementSpec, PodView

HASH = "controller-revision-hash"
GENERATION = "pod-template-generation"


class _Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: NodeAffinity | None = None


class _DaemonPodSpec(PodPlacementSpec, rename="camel", gc=False):
    affinity: _Affinity | None = None


class DaemonPod(PodView, rename="camel", gc=False):
    spec: _DaemonPodSpec = field(default_factory=_DaemonPodSpec)

    def node(self) -> str:
        """The node name, or an empty string if unknown."""
        if self.spec.node_name:
            return self.spec.node_name
        wanted = self.spec.affinity.node_affinity if self.spec.affinity is not None else None
        terms = wanted.required.node_selector_terms if wanted is not None and wanted.required is not None else ()
        for term in terms:
            for one in term.match_fields:
                if one.key == NAME_FIELD and one.operator == "In" and len(one.values) == 1:
                    return one.values[0]
        return ""

    def is_of(self, template: Template) -> bool:
        """Whether the pod was created from the template; pods of older controllers have only the generation."""
        labels = self.metadata.labels
        by_hash = labels.get(HASH) == template.hash
        return by_hash or (HASH not in labels and labels.get(GENERATION) == template.generation)


class Template(msgspec.Struct, frozen=True):
    """The current template."""

    hash: str
    generation: str


def daemon_pod(item: Item) -> DaemonPod:
    return item.read(DaemonPod)


def by_node(pods: Iterable[DaemonPod]) -> dict[str, list[DaemonPod]]:
    """The pods of each node, oldest first."""
    found: dict[str, list[DaemonPod]] = {}
    for pod in sorted(pods, key=_age):
        found.setdefault(pod.node(), []).append(pod)
    return found


def _age(pod: DaemonPod) -> tuple[float, str]:
    return pod.metadata.created_s(), pod.name
