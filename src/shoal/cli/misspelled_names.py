"""Warns of resources and PodGroups that waiting pods name and that do not exist, where a similar one does.

A warning and no error: a node with the resource, or the PodGroup, may be added later. A name like no other is probably
meant, and the reason of the pod says that it is missing. Pods that err alike make one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shoal.api.decode import Document, meta_of
from shoal.api.groups import coscheduling, kai, kubernetes, volcano
from shoal.api.pod import Pod
from shoal.engine.device_notation.names import GPU
from shoal.engine.events import Event, NodeSeen
from shoal.engine.from_api.membership import group_references
from shoal.store.inventory import Placed
from shoal.units.near_texts import meant_words

_GROUPS: Mapping[str, type] = {
    "volcano": volcano.VolcanoPodGroup,
    "kai": kai.KaiPodGroup,
    "coscheduling": coscheduling.CoschedulingPodGroup,
    "kubernetes": kubernetes.PodGroup,
}


_MOST_NAMES = 50
"""That are looked up: each is compared with all names that exist."""


def misspelled_name_warnings(
    waiting: Iterable[Placed[Pod]], events: Iterable[Event], documents: Sequence[Document]
) -> list[str]:
    """One line for each name and each place in a pod; of very many names the first."""
    names = _ExistingNames(events, documents)
    first: dict[tuple[str, str], str] = {}
    for placed in waiting:
        for path, words in (*names.resources(placed.value), *names.groups(placed.value)):
            first.setdefault((path, words), f"{placed.at(path)}: {words}")
    return list(first.values())


class _ExistingNames:
    """The names that exist, and what is meant by others."""

    def __init__(self, events: Iterable[Event], documents: Sequence[Document]) -> None:
        self._resources = set(_offered(events))
        self._groups: dict[tuple[str, str], set[str]] = {}
        """By project and namespace."""
        for each in documents:
            for project, kind in _GROUPS.items():
                if isinstance(each.value, kind):
                    meta = meta_of(each.value)
                    self._groups.setdefault((project, meta.namespace), set()).add(meta.name)
        self._meant: dict[tuple[str, str], str] = {}

    def resources(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """Only extended resources have a domain in their names."""
        for at, container in enumerate(pod.spec.containers if self._resources else ()):
            for name in container.resources.limits:
                if "/" in name and name not in self._resources:
                    meant = self._of(name, "", self._resources)
                    if meant:
                        yield f"spec.containers[{at}].resources.limits[{name}]", f"no node has {name}{meant}"

    def groups(self, pod: Pod) -> Iterator[tuple[str, str]]:
        for reference in group_references(pod):
            place = reference.kind, pod.metadata.namespace
            known = self._groups.get(place, set())
            if known and reference.name not in known:
                meant = self._of(reference.name, "/".join(place), known)
                if meant:
                    yield reference.path, f"PodGroup {reference.name} not found{meant}"

    def _of(self, name: str, place: str, known: set[str]) -> str:
        key = name, place
        if key not in self._meant:
            self._meant[key] = meant_words(name, known) if len(self._meant) < _MOST_NAMES else ""
        return self._meant[key]


def _offered(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, NodeSeen):
            yield from (name for name, amount in event.node.allocatable.items() if amount)
            if event.node.gpus:
                yield GPU
