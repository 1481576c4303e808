"""Groups the objects of a set of manifests by kind, each with its location in the files.

Kinds that no decision depends on are reported in one line with their numbers. Unknown kinds are reported once each with
the first place, so that a typing error in a kind is visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from shoal.api.decode import Document, Unknown
from shoal.api.wire import ApiStruct
from shoal.store.unread_kinds import has_no_part_in_decisions
from shoal.units.errors import UserError, Where

V_co = TypeVar("V_co", covariant=True)
A = TypeVar("A", bound=ApiStruct)


@dataclass(frozen=True, slots=True)
class Placed(Generic[V_co]):
    """A value and the document that it comes from."""

    value: V_co
    where: Where
    inside: str = ""
    """The path of the value in the document, if it is not the whole document: a pod in the template of its controller.
    """

    def at(self, path: str) -> Where:
        """The location of one of its fields."""
        return self.where.with_path(self.inside).below(path)

    def wrong(self, path: str, what: str, fix: str = "") -> UserError:
        return UserError(what, where=self.at(path), fix=fix)

    def reported(self, error: UserError) -> UserError:
        """An error about the value, with its location."""
        return error.at(self.at(error.where.path))


_READ_RAW = frozenset(
    {
        ("v1", "PersistentVolumeClaim"),
        ("v1", "PersistentVolume"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("coordination.k8s.io/v1", "Lease"),
    }
)


class Inventory:
    """The objects of a set of manifests."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._by_type: dict[type, list[Placed[ApiStruct]]] = {}
        self._unknown: list[Placed[Unknown]] = []
        for document in documents:
            if isinstance(document.value, Unknown):
                self._unknown.append(Placed(document.value, document.where))
            else:
                placed = Placed(document.value, document.where)
                self._by_type.setdefault(type(document.value), []).append(placed)

    def of(self, wanted: type[A]) -> list[Placed[A]]:
        """The objects of one type, in the order given."""
        return self._by_type.get(wanted, [])  # type: ignore[return-value]

    def others(self) -> list[Placed[Unknown]]:
        """The objects of kinds that are not modelled, for readers of raw objects."""
        return list(self._unknown)

    def skipped(self, read: Container[int] = ()) -> list[str]:
        """One line for each kind that is not read, and one for all kinds that no decision depends on. `read`: ids of
        values that another reader uses."""
        kinds: Counter[str] = Counter()
        idle: Counter[str] = Counter()
        first: dict[str, Where] = {}
        for placed in self._unknown:
            value = placed.value
            if id(value) in read or (value.api_version, value.kind) in _READ_RAW:
                continue
            if has_no_part_in_decisions(value.api_version, value.kind):
                idle[value.kind] += 1
                continue
            name = f"{value.kind} ({value.api_version})"
            kinds[name] += 1
            first.setdefault(name, placed.where)
        lines = [
            f"{first[name]}: {name} is not read and was skipped" + (f", {count} of them" if count > 1 else "")
            for name, count in kinds.items()
        ]
        listed = ", ".join(f"{kind} ({count:,})" for kind, count in sorted(idle.items()))
        return [*lines, f"not read, because no decision depends on them: {listed}"] if idle else lines
