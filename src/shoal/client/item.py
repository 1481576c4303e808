"""An object as the server sent it: its address, its version, and its bytes, decoded on request.

Caches hold thousands of these. The embedded server returns the same bytes that it stores, so that a cache in its
process adds only a small value for each object. A reader that needs three fields of a pod decodes three.

Rejected: decoded dictionaries in caches. Ten thousand pods would take 200 MB.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar
from weakref import WeakKeyDictionary

import msgspec

Obj = dict[str, Any]
T = TypeVar("T")
Key = tuple[str, str]
"""Namespace (empty for cluster-wide objects) and name."""


class Item(msgspec.Struct, eq=False, weakref=True):
    """One object at one version; immutable."""

    namespace: str
    name: str
    uid: str
    version: int
    """The resourceVersion; larger is later."""
    data: bytes

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    def obj(self) -> Obj:
        """A fresh copy of the whole object; the caller may change it. Objects of lists may lack kind and apiVersion."""
        decoded: Obj = msgspec.json.decode(self.data)
        return decoded

    def read(self, what: type[T]) -> T:
        """The fields that `what` (a msgspec struct) declares; skipping all others makes decoding fast."""
        return msgspec.json.decode(self.data, type=what)


class Seen(Generic[T]):
    """Caches values that were decoded from items, for readers that use thousands of them repeatedly. An entry is valid
    while its item is current.

    Rejected: storing it in the item. Each reader needs other fields, and most items are read once.
    """

    def __init__(self, what: type[T]) -> None:
        self._what = what
        self._known: WeakKeyDictionary[Item, T] = WeakKeyDictionary()

    def __call__(self, item: Item) -> T:
        """The caller must not change the result."""
        found = self._known.get(item)
        if found is None:
            found = self._known[item] = item.read(self._what)
        return found


def shortened(item: Item, fields: type[msgspec.Struct]) -> Item:
    """The item with only these fields; `obj()` of it is not the whole object."""
    return msgspec.structs.replace(item, data=msgspec.json.encode(item.read(fields)))


ChangeKind = Literal["ADDED", "MODIFIED", "DELETED"]


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch. `item` is None in a bookmark, which has only the version that the watch has reached."""

    kind: ChangeKind | Literal["BOOKMARK"]
    item: Item | None
    version: int


class Listed(msgspec.Struct, frozen=True):
    items: list[Item]
    version: int
    """The version from which a watch continues."""


class _ItemMeta(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"


class _ItemObject(msgspec.Struct, gc=False):
    metadata: _ItemMeta


_head = msgspec.json.Decoder(_ItemObject)


def item_of(data: bytes) -> Item:
    """An item from the JSON of one object."""
    meta = _head.decode(data).metadata
    return Item(meta.namespace, meta.name, meta.uid, int(meta.resource_version or 0), data)
