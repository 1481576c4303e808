"""Finds the objects that belong to the subject of an explanation: its manifest, its pods and its Workloads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from shoal.api.decode import Document, Unknown, meta_of, name_of_kind
from shoal.api.kueue import Workload
from shoal.api.pod import Pod
from shoal.api.wire import ApiStruct
from shoal.cli.explanation_text import is_admitted
from shoal.cli.object_names import Subject
from shoal.engine.from_api.queues import is_finished
from shoal.store.inventory import Inventory
from shoal.store.operator_pods import OperatorPods
from shoal.store.queues.members import Members


class SubjectObjects:
    def __init__(self, documents: Sequence[Document], queued: Collection[str]) -> None:
        """`queued`: the keys of the workloads that queues decide about."""
        self._documents = documents
        self._queued = queued
        self.pods: Mapping[str, Pod] = {
            each.value.metadata.key: each.value for each in documents if isinstance(each.value, Pod)
        }
        self.workloads: Mapping[str, Workload] = {
            each.value.metadata.key: each.value for each in documents if isinstance(each.value, Workload)
        }

    @cached_property
    def members(self) -> Members:
        inventory = Inventory(self._documents)
        return Members(inventory, OperatorPods(inventory).made([]))

    def value_of(self, subject: Subject) -> ApiStruct | Unknown | None:
        return next((each.value for each in self._documents if _is(each, subject)), None)

    def keys_of(self, subject: Subject) -> list[str]:
        """Of all its pods that have not ended, made ones too."""
        owners = {name_of_kind(each) for each in self._documents if _is(each, subject)}
        namespace, _, name = subject.key.partition("/")
        return [key for kind in sorted(owners) for key in self.members.keys_of((namespace, kind, name))]

    def pods_of(self, subject: Subject) -> list[Pod]:
        """Those that are there, ended ones too."""
        namespace, _, name = subject.key.partition("/")
        alive = set(self.keys_of(subject))
        found = []
        for key, pod in self.pods.items():
            owner = pod.metadata.controller()
            is_its = owner is not None and (owner.kind.lower(), owner.name) == (subject.kind, name)
            if key in alive or (is_its and pod.metadata.namespace == namespace):
                found.append(pod)
        return found

    def workload_of(self, subject: Subject) -> str:
        namespace, _, name = subject.key.partition("/")
        made = f"{namespace}/{subject.kind}-{name}"
        return next(iter(self.workloads_of(subject)), made if made in self._queued else "")

    def workloads_of(self, subject: Subject) -> list[str]:
        """One that grows has several: what it runs by comes first, what has finished last."""
        namespace, _, name = subject.key.partition("/")
        whose = subject.kind, name
        found = [
            key
            for key, workload in self.workloads.items()
            if workload.metadata.namespace == namespace
            and whose in {(owner.kind.lower(), owner.name) for owner in workload.metadata.owner_references}
        ]
        return sorted(found, key=lambda key: (is_finished(self.workloads[key]), not is_admitted(self.workloads[key])))


def _is(document: Document, subject: Subject) -> bool:
    return name_of_kind(document).lower() == subject.kind and meta_of(document.value).key == subject.key
