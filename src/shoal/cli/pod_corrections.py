"""Corrects what a pod of a cluster says of itself and what keeps it waiting before any node is considered: the names of
its scheduler, its node, its PriorityClass and its volume claims, the storage class of a claim, scheduling gates, and
the bounds of LimitRanges.

Guarantees: a change is a remedy only if everything was decided anew with it, and the pod then ran.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from msgspec import structs

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.disruption import PriorityClass
from shoal.api.meta import ObjectMeta
from shoal.api.pod import Pod, PodSpec
from shoal.api.wire import ApiStruct
from shoal.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from shoal.cli.limit_corrections import limit_corrections
from shoal.cli.scheduler_names import is_unknown_scheduler, near_scheduler
from shoal.sim.queued_pods import GATES
from shoal.sim.remedies import Objects
from shoal.store.queues.members import Owner
from shoal.units.errors import Where
from shoal.units.near_texts import near_texts, nearest_name
from shoal.views.explanation import HELP, Explanation
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import (
    FieldEdit,
    edit_commands,
    edit_words,
    priority_class_command,
    removal_command,
    replacement_command,
)

_HOSTNAME = "kubernetes.io/hostname"
_MAKERS = (Deployment, StatefulSet, ReplicaSet, DaemonSet, Job)
RunsAmong = Callable[[Sequence[Document], str], bool]
"""Whether a pod runs if everything is decided anew about these documents."""


class _Correction(NamedTuple):
    remedy: Remedy
    spec: PodSpec | None = None
    """Of the pod, with the change."""
    added: tuple[Document, ...] = ()
    replaced: tuple[tuple[Document, Document], ...] = ()


class PodCorrections:
    def __init__(self, documents: Sequence[Document], objects: Objects, runs_among: RunsAmong) -> None:
        self._documents = documents
        self._objects = objects
        self._runs_among = runs_among

    def tell(self, explanation: Explanation, key: str) -> None:
        """Adds the corrections after which the pod runs."""
        pod = self._objects.pod(key) if self._objects.is_living else None
        if pod is None:
            return
        found = [each.remedy for each in self._corrections(key, pod) if self._runs_among(self._with(key, each), key)]
        if found:
            explanation.remedies = [*found, *explanation.remedies]
            lines = [line for remedy in found for line in remedy.lines()]
            explanation.add(HELP, *lines)

    def _corrections(self, key: str, pod: Pod) -> Iterator[_Correction]:
        spec = pod.spec
        if spec.node_name:
            yield from self._of_node(key, spec) if pod.status.phase == "Pending" else ()
            return
        if is_unknown_scheduler(pod, self._objects.pods.values()) and (near := near_scheduler(pod)):
            edit = FieldEdit(("spec", "schedulerName"), spec.scheduler_name, near)
            yield self._edited(key, structs.replace(spec, scheduler_name=near), edit)
        yield from self._of_gates(key, pod)
        yield from self._of_claims(key, pod)
        yield from self._of_priority(key, spec)
        if key not in self._objects.pods:
            limits = limit_corrections(self._documents, pod, is_living=self._objects.is_living)
            yield from () if limits is None else [_Correction(limits[0], replaced=limits[1])]

    def _of_node(self, key: str, spec: PodSpec) -> Iterator[_Correction]:
        """Its node does not exist. With the nearest name it is tried as if it required that node."""
        if spec.node_name in self._objects.nodes:
            return
        free = structs.replace(spec, node_name="")
        path = ("spec", "nodeName")
        near = nearest_name(spec.node_name, self._objects.nodes)
        if near in self._objects.nodes and self._objects.nodes[near].metadata.labels.get(_HOSTNAME) == near:
            required = structs.replace(free, node_selector={**spec.node_selector, _HOSTNAME: near})
            yield self._edited(key, required, FieldEdit(path, spec.node_name, near))
        else:
            yield self._edited(key, free, FieldEdit.removed(path, spec.node_name))

    def _of_gates(self, key: str, pod: Pod) -> Iterator[_Correction]:
        names = [gate.name for gate in pod.spec.scheduling_gates]
        if not names or GATES.intersection(names) or key not in self._objects.pods:
            return
        words = f"Remove the scheduling gate{'s' * (len(names) > 1)} of pod {key}."
        command = removal_command("pod", key, ("spec", "schedulingGates"))
        yield _Correction(Remedy(words, (command,)), structs.replace(pod.spec, scheduling_gates=()))

    def _of_claims(self, key: str, pod: Pod) -> Iterator[_Correction]:
        namespace = pod.metadata.namespace
        claims = {meta_of(each.value).name: each for each in self._of_kind("PersistentVolumeClaim", namespace)}
        if not claims and not self._of_kind("StorageClass"):
            # They were not read.
            return
        for at, volume in enumerate(pod.spec.volumes):
            source = volume.persistent_volume_claim
            if source is None:
                continue
            name = source.claim_name
            near = near_texts(name, claims)
            if name in claims:
                yield from self._of_class(claims[name])
            elif near:
                renamed = structs.replace(volume, persistent_volume_claim=structs.replace(source, claim_name=near[0]))
                volumes = (*pod.spec.volumes[:at], renamed, *pod.spec.volumes[at + 1 :])
                path = ("spec", "volumes", str(at), "persistentVolumeClaim", "claimName")
                yield self._edited(key, structs.replace(pod.spec, volumes=volumes), FieldEdit(path, name, near[0]))

    def _of_class(self, document: Document) -> Iterator[_Correction]:
        """The claim names a StorageClass that does not exist. Its class cannot be changed."""
        claim = document.value
        if not isinstance(claim, Unknown):
            return
        spec = dict(claim.raw.get("spec") or {})
        name = str(spec.get("storageClassName") or "")
        known = [meta_of(each.value).name for each in self._of_kind("StorageClass")]
        meant = [*near_texts(name, known), *(known if len(known) == 1 else ())]
        if not name or name in known or spec.get("volumeName") or not meant:
            return
        meta = meta_of(claim)
        key = f"{meta.namespace}/{meta.name}"
        edit = FieldEdit(("spec", "storageClassName"), name, meant[0])
        words = f"In persistentvolumeclaim {key}, {edit.words()}: the claim is created again for another class."
        command = replacement_command("persistentvolumeclaim", key, {"storageClassName": meant[0]})
        raw = {**claim.raw, "spec": {**spec, "storageClassName": meant[0]}}
        changed = dataclasses.replace(document, value=dataclasses.replace(claim, raw=raw))
        yield _Correction(Remedy(words, (command,)), replaced=((document, changed),))

    def _of_priority(self, key: str, spec: PodSpec) -> Iterator[_Correction]:
        """Of a pod that is not created because its class does not exist."""
        name = spec.priority_class_name
        known = [each.value.metadata.name for each in self._documents if isinstance(each.value, PriorityClass)]
        if not name or name in known or key in self._objects.pods or name.startswith("system-"):
            return
        near = nearest_name(name, known)
        if near:
            edit = FieldEdit(("spec", "priorityClassName"), name, near)
            yield self._edited(key, structs.replace(spec, priority_class_name=near), edit)
            return
        words = f"Create PriorityClass {name}, here with priority 0, the one of pods without a class."
        created = Document(PriorityClass(metadata=ObjectMeta(name=name), value=0), Where())
        yield _Correction(Remedy(words, (priority_class_command(name, 0),)), added=(created,))

    def _edited(self, key: str, spec: PodSpec, edit: FieldEdit) -> _Correction:
        target = self._objects.target([key])
        return _Correction(Remedy(edit_words([edit], target), edit_commands([edit], target)), spec)

    def _of_kind(self, kind: str, namespace: str = "") -> list[Document]:
        return [
            each
            for each in self._documents
            if isinstance(each.value, Unknown)
            and each.value.kind == kind
            and (not namespace or meta_of(each.value).namespace == namespace)
        ]

    # -- the documents of a trial --------------------------------------------------------------------------------

    def _with(self, key: str, correction: _Correction) -> list[Document]:
        after = {id(before): changed for before, changed in correction.replaced}
        documents = [after.get(id(each), each) for each in self._documents]
        if correction.spec is not None:
            documents = [self._respecified(each, key, correction.spec) for each in documents]
        return [*documents, *correction.added]

    def _respecified(self, document: Document, key: str, spec: PodSpec) -> Document:
        """With this spec in the pod, or in the template of which its controller creates it."""
        value, owner = document.value, self._objects.owner(key)
        changed: ApiStruct | None = None
        is_made = key not in self._objects.pods
        if isinstance(value, Pod) and value.metadata.key == key:
            changed = structs.replace(value, spec=spec)
        elif is_made and isinstance(value, _MAKERS) and owner == _owner_of(value):
            template = structs.replace(value.spec.template, spec=spec)
            changed = structs.replace(value, spec=structs.replace(value.spec, template=template))
        return document if changed is None else dataclasses.replace(document, value=changed)


def _owner_of(value: Deployment | StatefulSet | ReplicaSet | DaemonSet | Job) -> Owner:
    return value.metadata.namespace, type(value).__name__, value.metadata.name
