"""A daemon's pod: which node it is for, before the scheduler has bound it too, and of which template it is."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from shoal.api.node_affinity import NAME_FIELD, NodeAffinity
from shoal.controllers.owned_pods.sight import Place, PodSight
from shoal.store.live.item import Item

HASH = "controller-revision-hash"
GENERATION = "pod-template-generation"


class _Affinity(msgspec.Struct, rename="camel", gc=False):
    node_affinity: NodeAffinity | None = None


class _DaemonPlace(Place, rename="camel", gc=False):
    affinity: _Affinity | None = None


class DaemonPod(PodSight, rename="camel", gc=False):
    spec: _DaemonPlace = field(default_factory=_DaemonPlace)

    def node(self) -> str:
        """Empty when nothing says."""
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
        """Made from that template; pods that an older controller made know only the generation."""
        labels = self.metadata.labels
        by_hash = labels.get(HASH) == template.hash
        return by_hash or (HASH not in labels and labels.get(GENERATION) == template.generation)


class Template(msgspec.Struct, frozen=True):
    """Which template is the present one."""

    hash: str
    generation: str


def daemon_pod(item: Item) -> DaemonPod:
    return item.read(DaemonPod)


def by_node(pods: Iterable[DaemonPod]) -> dict[str, list[DaemonPod]]:
    """Oldest first on each."""
    found: dict[str, list[DaemonPod]] = {}
    for pod in sorted(pods, key=_age):
        found.setdefault(pod.node(), []).append(pod)
    return found


def _age(pod: DaemonPod) -> tuple[float, str]:
    return pod.metadata.created_s(), pod.name
