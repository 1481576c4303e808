"""One object as the state keeps it: its bytes, and the little that is asked without decoding them.

Objects are kept as the JSON they are answered with; a list is a join of bytes. With them are the labels and fields
that selectors ask for. Ten thousand pods live here, so that a record is one small value that the garbage collector
does not walk, and equal label sets are one dictionary.

Rejected: decoded objects. They take four times the memory and have to be encoded for every reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from shoal.embedded.apiserver.resource import Ref

Obj = dict[str, Any]
Describe = Callable[["Ref", Obj], tuple[Mapping[str, str], Mapping[str, str]]]
"""The labels and selectable fields of an object."""

_NOTHING: Mapping[str, str] = {}


class Record(msgspec.Struct, gc=False, eq=False):
    """An object at one revision. Never changed: an update makes another record."""

    ref: Ref
    _uid: str
    revision: int
    data: bytes
    _labels: Mapping[str, str]
    _fields: Mapping[str, str]
    _describe: Describe | None = None
    """Set on records read at the start, until they are needed: most of them are never selected."""

    @property
    def uid(self) -> str:
        if self._describe is not None:
            self._learn(self._describe)
        return self._uid

    @property
    def labels(self) -> Mapping[str, str]:
        if self._describe is not None:
            self._learn(self._describe)
        return self._labels

    @property
    def fields(self) -> Mapping[str, str]:
        if self._describe is not None:
            self._learn(self._describe)
        return self._fields

    def obj(self) -> Obj:
        """A fresh copy in the stored version; the caller may change it."""
        decoded: Obj = msgspec.json.decode(self.data)
        return decoded

    def at(self, revision: int) -> Record:
        """The same object carrying a later resourceVersion: what watchers receive for a deleted object."""
        data = restamp(self.data, self.revision, revision)
        return Record(self.ref, self._uid, revision, data, self._labels, self._fields, self._describe)

    def _learn(self, describe: Describe) -> None:
        obj = self.obj()
        self._labels, self._fields = describe(self.ref, obj)
        self._uid = obj["metadata"].get("uid", "")
        self._describe = None


class Write(msgspec.Struct, eq=False):
    """What shall become of one object. `obj` is in the stored version and belongs to the state from here on."""

    ref: Ref
    obj: Obj | None
    """None deletes."""
    before: Record | None = None
    """What the writer read and decided by; None when there was nothing. The commit fails if that is no longer so."""
    uid: str = ""
    labels: Mapping[str, str] = _NOTHING
    fields: Mapping[str, str] = _NOTHING


def unread(ref: Ref, revision: int, data: bytes, describe: Describe) -> Record:
    """A record whose labels and fields are found when first asked for."""
    return Record(ref, "", revision, data, _NOTHING, _NOTHING, describe)


def restamp(data: bytes, old: int, new: int) -> bytes:
    """The same JSON with another resourceVersion, without decoding where that is safe."""
    found = b'"resourceVersion":"%d"' % old
    if data.count(found) == 1:
        return data.replace(found, b'"resourceVersion":"%d"' % new)
    # An object embedded in this one may carry the same number.
    obj: Obj = msgspec.json.decode(data)
    obj["metadata"]["resourceVersion"] = str(new)
    return msgspec.json.encode(obj)
