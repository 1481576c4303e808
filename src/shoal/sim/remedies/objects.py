"""Looks up what a remedy needs to know of the objects besides the facts: owners and siblings of pods, where a field was
written, and the kubectl command that changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import KaiPodGroup
from shoal.api.groups.kubernetes import PodGroup
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.kueue import ClusterQueue, Cohort, Workload
from shoal.api.limit_ranges import LimitRange
from shoal.api.node import Node
from shoal.api.pod import Pod, PodTemplate
from shoal.api.wire import ApiStruct
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from shoal.engine.events import Event, NodeFacts, NodeSeen
from shoal.engine.from_api.pod_identity import KUEUE_WORKLOAD_ANNOTATION
from shoal.engine.queues.remedies.remedy import FieldChange
from shoal.store.inventory import Inventory
from shoal.store.operator_pods import OperatorPods
from shoal.store.queues.members import Members, Owner
from shoal.views.asks import pods_words
from shoal.views.enumeration import few
from shoal.views.remedy_commands import FieldEdit, PatchTarget

_MOST_NAMES = 4
_GROUPS: Mapping[str, type[ApiStruct]] = {
    "volcano": VolcanoPodGroup,
    "kai": KaiPodGroup,
    "coscheduling": CoschedulingPodGroup,
    "kubernetes": PodGroup,
}
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
        self._adopted: dict[str, tuple[Owner, str]] = {}
        self.is_living = any(node.metadata.uid for node in self.nodes.values())
        """Whether the objects are those of a cluster, on which commands can act."""

    @cached_property
    def _members(self) -> Members:
        inventory = Inventory(self._documents)
        return Members(inventory, OperatorPods(inventory).made([]))

    def adopt(self, workload: str, pods: Iterable[str]) -> None:
        """Pods that a queue holds back, some of which do not exist yet: they belong to the owner of the workload."""
        self._adopted.update(dict.fromkeys(pods, (self.queued_owner(workload), workload)))

    def queued_owner(self, workload: str) -> Owner:
        """The object that is queued as the workload: its controller, or the Workload itself where it has none."""
        namespace, _, name = workload.partition("/")
        owner: Owner = (namespace, "Workload", name)
        for document in self._documents:
            meta = meta_of(document.value)
            if isinstance(document.value, Workload) and meta.key == workload:
                reference = meta.controller()
                owner = owner if reference is None else (namespace, reference.kind, reference.name)
            elif isinstance(document.value, Job) and (meta.namespace, f"job-{meta.name}") == (namespace, name):
                owner = (namespace, "Job", meta.name)
        return owner

    def pod_names(self, pods: Sequence[str]) -> str:
        """A few names. On a cluster, pods that their controllers have yet to create are counted, because they have no
        names yet."""
        there = [pod for pod in pods if pod in self.pods] if self.is_living else pods
        missing = len(pods) - len(there)
        parts = [few(there, _MOST_NAMES)] if there else []
        if missing:
            parts.append(f"{pods_words(missing)} not created yet")
        return ", ".join(parts)

    def limit_ranges(self, namespace: str) -> list[str]:
        """As namespace/name, in order of name."""
        ranges = (each.value for each in self._documents if isinstance(each.value, LimitRange))
        return sorted(each.metadata.key for each in ranges if each.metadata.namespace == namespace)

    def workload_words(self, key: str) -> str:
        """`job default/train` of a workload with an owner, else the key of the workload."""
        namespace, kind, name = self.queued_owner(key)
        return key if kind == "Workload" else f"{kind.lower()} {namespace}/{name}"

    def pod(self, key: str) -> Pod | None:
        """Also one that its controller has yet to create."""
        found = self.pods.get(key)
        if found is None and key in self._adopted:
            value = self._object(self._adopted[key][0])
            if isinstance(value, (*_TEMPLATES, Job)):
                template = value.spec.template
                return Pod(metadata=template.metadata, spec=template.spec)
        if found is None and key in self._members.pods:
            found = self._members.pods[key].value
        return found

    def owner(self, key: str) -> Owner | None:
        """The topmost controller of a pod."""
        if key in self._adopted and key not in self.pods:
            return self._adopted[key][0]
        pod = self.pod(key)
        owners = [] if pod is None else list(self._members.owners(pod))
        return owners[-1] if owners else None

    def siblings(self, key: str) -> frozenset[str]:
        """All pods of the same controller, the pod itself included."""
        owner = self.owner(key)
        return frozenset({key} if owner is None else {key, *self._members.keys_of(owner)})

    def of_workloads(self) -> frozenset[str]:
        """The pods of admitted Workloads. If they are deleted, the Workload keeps its place for their successors."""
        return frozenset(key for key, pod in self.pods.items() if KUEUE_WORKLOAD_ANNOTATION in pod.metadata.annotations)

    def target(self, pods: Sequence[str]) -> PatchTarget:
        """Where the spec of these pods is written: their controller's template, or the pods themselves."""
        owner = self.owner(pods[0])
        value = None if owner is None else self._object(owner)
        if owner is None:
            return PatchTarget("pod", tuple(pods))
        namespace, kind, name = owner
        is_open = isinstance(value, _TEMPLATES) or (isinstance(value, Job) and value.spec.suspend)
        there = tuple(pod for pod in pods if pod in self.pods)
        keeps_pods = isinstance(value, ReplicaSet | StatefulSet)
        if isinstance(value, DaemonSet):
            keeps_pods = value.spec.update_strategy.type == "OnDelete"
        keys = (f"{namespace}/{name}",)
        return PatchTarget(kind.lower(), keys, is_template=True, is_open=is_open, pods=there, keeps_pods=keeps_pods)

    def has_tolerations(self, key: str) -> bool:
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

    def resource_edits(self, key: str, old: str, new: str) -> list[FieldEdit]:
        """Every place where the pod requests a resource, which is renamed."""
        pod = self.pod(key)
        if pod is None:
            return []
        found = []
        for kind, containers in (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers)):
            for at, container in enumerate(containers):
                amounts = (("limits", container.resources.limits), ("requests", container.resources.requests))
                for side, each in amounts:
                    if old in each:
                        path = ("spec", kind, str(at), "resources", side)
                        found.append(FieldEdit.renamed(path, old, new, str(each[old])))
        return found

    def quota_path(self, change: FieldChange) -> tuple[str, ...]:
        """Where a queue or cohort has the quota that is changed; empty where it is not written."""
        for document in self._documents:
            value = document.value
            if not isinstance(value, ClusterQueue | Cohort) or value.metadata.name != change.name:
                continue
            if type(value).__name__ != change.object:
                continue
            for at, group in enumerate(value.spec.resource_groups):
                for index, flavor in enumerate(group.flavors):
                    for place, resource in enumerate(flavor.resources):
                        if (flavor.name, resource.name) == (change.flavor, change.resource):
                            path = ("spec", "resourceGroups", at, "flavors", index, "resources", place, change.field)
                            return tuple(map(str, path))
        return ()

    def pod_group(self, key: str) -> ApiStruct | None:
        """The object of a gang."""
        return self._pod_groups.get(key)

    def pod_groups(self, namespace: str, project: str) -> list[str]:
        """The names of the groups of a project in a namespace."""
        return [
            meta_of(value).name
            for value in self._pod_groups.values()
            if meta_of(value).namespace == namespace and isinstance(value, _GROUPS.get(project, ()))
        ]

    @cached_property
    def _pod_groups(self) -> dict[str, ApiStruct]:
        kinds = tuple(_GROUPS.values())
        return {meta_of(value).key: value for document in self._documents if isinstance(value := document.value, kinds)}

    def flavor_paths(self, queue: str, flavor: str) -> list[tuple[str, ...]]:
        """Where a ClusterQueue names a flavor."""
        value = self._object(("", "ClusterQueue", queue))
        if not isinstance(value, ClusterQueue):
            return []
        return [
            ("spec", "resourceGroups", str(at), "flavors", str(index), "name")
            for at, group in enumerate(value.spec.resource_groups)
            for index, each in enumerate(group.flavors)
            if each.name == flavor
        ]

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
