"""Wakes the owners of a changed dependent: its controller, or without one, each owner with a matching selector."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shoal.api.selectors import Selector
from shoal.client.informer import Informer
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import Kind
from shoal.client.loop import Loop
from shoal.client.owned_pods.ownership import head, owner_index
from shoal.client.owned_pods.pod_view import OwnedPodMeta

GATHER_S = 0.05
_PER_POD_S, _LONGEST_S = 0.0002, 1.0


def gather_s(pods: int) -> float:
    """The delay that combines changes, for an owner with so many pods."""
    return min(GATHER_S + _PER_POD_S * pods, _LONGEST_S)


def _is_as_before(before: OwnedPodMeta, after: OwnedPodMeta) -> bool:
    """Whether the fields that decide about the owner are unchanged."""
    return before.owner_references == after.owner_references and before.labels == after.labels


class OwnerWakeups:
    """For owners of one kind. `selector` reads the spec of an owner."""

    def __init__(self, kind: Kind, owners: Informer, selector: Callable[[Obj], Selector]) -> None:
        self._kind = kind
        self._owners = owners
        self._by_namespace = owners.index("namespace", lambda item: (item.namespace,))
        self._selector = selector
        self._selectors: dict[Key, tuple[int, Selector]] = {}

    def keys(self, dependent: Item) -> Iterator[Key]:
        meta = head(dependent)
        owner = meta.controller()
        if owner is not None:
            found = self._owners.get(dependent.namespace, owner.name) if owner.kind == self._kind.name else None
            if found is not None and found.uid == owner.uid:
                yield found.key
        elif meta.labels:
            for item in self._by_namespace[dependent.namespace]:
                if self.selector(item).matches(meta.labels):
                    yield item.key

    def wake(self, loop: Loop, dependents: Informer) -> None:
        """Wakes an owner after a delay that combines changes and is longer for owners with more pods: ten thousand pods
        that become ready cause a few reconciles."""
        by_owner = owner_index(dependents)

        def changed(before: Item | None, after: Item | None) -> None:
            same = before is not None and after is not None and _is_as_before(head(before), head(after))
            for item in (None if same else before, after):
                if item is None:
                    continue
                owner = head(item).controller()
                size = by_owner.count(owner.uid) if owner is not None else 0
                for key in self.keys(item):
                    loop.wake(key, gather_s(size))

        dependents.on_change(changed)

    def selector(self, owner: Item) -> Selector:
        """The selector of an owner, parsed once per version: thousands of pods may have no controller."""
        known = self._selectors.get(owner.key)
        if known is None or known[0] != owner.version:
            known = self._selectors[owner.key] = (owner.version, self._selector(owner.obj()["spec"]))
        return known[1]

    def forget(self, key: Key) -> None:
        self._selectors.pop(key, None)
