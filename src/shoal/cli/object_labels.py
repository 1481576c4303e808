"""Finds objects and their labels by the names of the rows of a list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shoal.api.decode import Document, meta_of, name_of_kind
from shoal.api.pod import Pod
from shoal.store.queues.job_parts import JOB_KINDS

if TYPE_CHECKING:
    from shoal.cli.object_source import Source

_ALIKE = {"KueueWorkload": "Workload"}
_GROUP_OWNERS = ("Workload", "LeaderWorkerSet", "StatefulSet", "Deployment", "ReplicaSet")


def objects_of(documents: Iterable[Document], kinds: Sequence[str]) -> dict[str, Document]:
    """The objects of these kinds."""
    return {
        meta_of(each.value).key: each
        for each in documents
        if (kind := name_of_kind(each)) in kinds or _ALIKE.get(kind) in kinds
    }


def labels_of(documents: Iterable[Document], kinds: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Of the objects of these kinds."""
    return {key: meta_of(found.value).labels for key, found in objects_of(documents, kinds).items()}


def objects_of_gangs(source: Source) -> dict[str, Document]:
    """The PodGroup of a gang, or else the object of its name that has its pods."""
    found: dict[str, Document] = {}
    for each in source.documents:
        key = meta_of(each.value).key
        if _gang_rank(each) < _gang_rank(found.get(key)):
            found[key] = each
    return found


def _gang_rank(document: Document | None) -> int:
    kind = "" if document is None else name_of_kind(document)
    if kind.endswith("PodGroup"):
        return 0
    return 1 if kind in _OWNERS else 2


_OWNERS = frozenset({*(row.kind.name for row in JOB_KINDS), *_GROUP_OWNERS})
"""Kinds that a gang may be named after."""


def labels_of_gangs(source: Source) -> dict[str, Mapping[str, str]]:
    """Of the objects with the name of a gang (a PodGroup, a Job), or else of its pods."""
    cluster = source.taken().cluster
    found: dict[str, Mapping[str, str]] = {}
    by_pod = {meta_of(each.value).key: meta_of(each.value).labels for each in source.documents if _is_pod(each)}
    for gang in cluster.gangs:
        of_pods = (by_pod[pod] for pod in (*gang.running, *gang.waiting) if pod in by_pod)
        found[gang.name] = next(of_pods, {})
    own: dict[str, dict[str, str]] = {}
    for each in source.documents:
        meta = meta_of(each.value)
        if meta.key in found and not _is_pod(each):
            own.setdefault(meta.key, {}).update(meta.labels)
    return found | own


def _is_pod(document: Document) -> bool:
    return isinstance(document.value, Pod)
