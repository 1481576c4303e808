"""Finds the terms that select a pod: terms are indexed by a label that the selected pods must have.

A cluster has as many anti-affinity terms as it has careful deployments, and nearly all are of the form "pods with
`app: this`". A newcomer is compared with those that name one of its own labels, and with the few that name none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from shoal.engine.pod_rules import Term

T = TypeVar("T")

Label = tuple[str, str]


class TermIndex(Generic[T]):
    """Terms, each with something kept for it."""

    __slots__ = ("_by_label", "_loose", "_of")

    def __init__(self) -> None:
        self._of: dict[Term, T] = {}
        self._by_label: dict[Label, dict[Term, T]] = {}
        self._loose: dict[Term, T] = {}

    def get(self, term: Term) -> T | None:
        return self._of.get(term)

    def put(self, term: Term, kept: T) -> None:
        self._of[term] = kept
        for requirement in term.selected.selector.requirements or ():
            if requirement.operator == "In":
                for value in requirement.values:
                    self._by_label.setdefault((requirement.key, value), {})[term] = kept
                return
        self._loose[term] = kept

    def of(self, pod: tuple[str, tuple[Label, ...]], of_namespace: Mapping[str, str]) -> Iterator[T]:
        """What is kept for the terms that mean a pod of this namespace and labels."""
        namespace, labels = pod
        found = dict(labels)
        for terms in (*(self._by_label[label] for label in labels if label in self._by_label), self._loose):
            for term, kept in terms.items():
                if term.selected.includes(namespace, found, of_namespace):
                    yield kept

    def keep(self, wanted: Callable[[T], bool]) -> list[T]:
        """Drop the terms for which nothing wanted is kept, and return what was kept for them."""
        before = self._of
        self._of, self._by_label, self._loose = {}, {}, {}
        dropped = []
        for term, kept in before.items():
            if wanted(kept):
                self.put(term, kept)
            else:
                dropped.append(kept)
        return dropped
