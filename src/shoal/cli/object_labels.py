"""Finds the labels of objects by their names, for label selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shoal.api.decode import Document, meta_of, name_of_kind
from shoal.api.pod import Pod

if TYPE_CHECKING:
    from shoal.cli.object_source import Source

_ALIKE = {"KueueWorkload": "Workload"}


def labels_of(documents: Iterable[Document], kinds: Sequence[str]) -> dict[str, Mapping[str, str]]:
    """Of the objects of these kinds."""
    return {
        meta_of(each.value).key: meta_of(each.value).labels
        for each in documents
        if (kind := name_of_kind(each)) in kinds or _ALIKE.get(kind) in kinds
    }


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
