"""Looks up what a remedy needs to know of the objects besides the facts: owners and siblings of pods, where a field was
written, and the kubectl command that changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.node import Node
from shoal.api.pod import Pod, PodTemplate
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from shoal.engine.events import Event, NodeFacts, NodeSeen
from shoal.store.inventory import Inventory
from shoal.store.operator_pods import OperatorPods
from shoal.store.queues.members import Members, Owner
from shoal.views.remedy_commands import FieldEdit, PatchTarget

_TEMPLATES = (Deployment, StatefulSet, ReplicaSet, DaemonSet)


class Objects:
    """The documents of one answer."""

    def __init__(self, documents: Sequence[Document], events: Iterable[Event]) -> None:
        self._documents = documents
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        for document in documents:
            if isinstance(document.value, Node):
                self.nodes[document.value.metadata.name] = document.value
            elif isinstance(document.value, Pod):
                self.pods[document.value.metadata.key] = document.value
        self.node_facts: dict[str, NodeFacts] = {
            event.node.name: event.node for event in events if isinstance(event, NodeSeen)
        }
        self.is_living = any(node.metadata.uid for node in self.nodes.values())
        """Whether the objects are those of a cluster, on which commands can act."""

    @cached_property
    def _members(self) -> Members:
        inventory = Inventory(self._documents)
        return Members(inventory, OperatorPods(inventory).made([]))

    def pod(self, key: str) -> Pod | None:
        """Also one that its controller has yet to create."""
        found = self.pods.get(key)
        if found is None and key in self._members.pods:
            found = self._members.pods[key].value
        return found

    def owner(self, key: str) -> Owner | None:
        """The topmost controller of a pod."""
        pod = self.pod(key)
        owners = [] if pod is None else list(self._members.owners(pod))
        return owners[-1] if owners else None

    def siblings(self, key: str) -> frozenset[str]:
        """All pods of the same controller, the pod itself included."""
        owner = self.owner(key)
        return frozenset({key} if owner is None else {key, *self._members.keys_of(owner)})

    def target(self, pods: Sequence[str]) -> PatchTarget:
        """Where the spec of these pods is written: their controller's template, or the pods themselves."""
        owner = self.owner(pods[0])
        value = None if owner is None else self._object(owner)
        if owner is None:
            return PatchTarget("pod", tuple(pods))
        namespace, kind, name = owner
        is_open = isinstance(value, _TEMPLATES) or (isinstance(value, Job) and value.spec.suspend)
        there = tuple(pod for pod in pods if pod in self.pods)
        return PatchTarget(kind.lower(), (f"{namespace}/{name}",), is_template=True, is_open=is_open, pods=there)

    def tolerates_anything(self, key: str) -> bool:
        """Whether the pod has a list of tolerations, to which one can be added."""
        pod = self.pods.get(key)
        return pod is not None and bool(pod.spec.tolerations)

    def template_of(self, key: str) -> PodTemplate | None:
        owner = self.owner(key)
        value = None if owner is None else self._object(owner)
        return value.spec.template if isinstance(value, (*_TEMPLATES, Job)) else None

    def edits(self, key: str, old: str, new: str, values: Sequence[str] = ()) -> list[FieldEdit]:
        """Every place where the pod writes a label or level that no node has. `values`: the label exists, and these of
        its values do not."""
        pod = self.pod(key)
        if pod is None:
            return []
        return [*_selector_edits(pod, old, new, values), *([] if values else _topology_edits(pod, old, new))]

    def _object(self, owner: Owner) -> object:
        namespace, kind, name = owner
        for document in self._documents:
            value = document.value
            meta = meta_of(value)
            kind_of = value.kind if isinstance(value, Unknown) else type(value).__name__
            if (meta.namespace, kind_of, meta.name) == (namespace, kind, name):
                return value
        return None


def _selector_edits(pod: Pod, old: str, new: str, values: Sequence[str]) -> Iterable[FieldEdit]:
    selector = pod.spec.node_selector
    if old in selector and not values:
        yield FieldEdit.renamed(("spec", "nodeSelector"), old, new, selector[old])
    elif old in selector and selector[old] in values:
        yield FieldEdit(("spec", "nodeSelector", old), selector[old], new)
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    where = ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for at, term in enumerate(terms):
        for index, requirement in enumerate(term.match_expressions):
            path = (*where, str(at), "matchExpressions", str(index))
            if requirement.key == old and not values:
                yield FieldEdit((*path, "key"), old, new)
            elif requirement.key == old and tuple(requirement.values) == tuple(values):
                yield FieldEdit((*path, "values"), list(values), [new])


def _topology_edits(pod: Pod, old: str, new: str) -> Iterable[FieldEdit]:
    for name, value in pod.metadata.annotations.items():
        if value == old and "topology" in name:
            yield FieldEdit(("metadata", "annotations", name), old, new)
    for at, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.topology_key == old:
            yield FieldEdit(("spec", "topologySpreadConstraints", str(at), "topologyKey"), old, new)
    affinity = pod.spec.affinity
    for field, rules in (
        ("podAffinity", None if affinity is None else affinity.pod_affinity),
        ("podAntiAffinity", None if affinity is None else affinity.pod_anti_affinity),
    ):
        for at, term in enumerate(() if rules is None else rules.required):
            if term.topology_key == old:
                path = ("spec", "affinity", field, "requiredDuringSchedulingIgnoredDuringExecution", str(at))
                yield FieldEdit((*path, "topologyKey"), old, new)


NO_OBJECTS = Objects((), ())
"""Where only the facts are known: remedies have no commands then."""
