"""JSON patch (RFC 6902): a list of operations, all of them or none.

Own code, not the library `jsonpatch`: its errors name the operation, Kubernetes' do not; and it knows neither the limit
of operations nor the one of copied bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.embedded.apiserver.patches import pointer
from shoal.embedded.apiserver.patches.copying import copied
from shoal.embedded.apiserver.patches.refusals import does_not_apply, too_many_operations, wrong_json

Obj = dict[str, Any]

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024
"""How much `copy` operations of one patch may add, so that a short patch cannot grow without end."""


class _NotAppliedError(Exception):
    """An operation that does not fit the document."""


def json_patch(obj: Obj, operations: Any) -> Any:
    """The patched document; neither argument is changed or shared."""
    if not isinstance(operations, list):
        if operations is None:
            return copied(obj)
        raise wrong_json(operations, "jsonpatch.Patch")
    for operation in operations:
        if operation is not None and not isinstance(operation, dict):
            raise wrong_json(operation, "jsonpatch.Operation")
    if len(operations) > MOST_OPERATIONS:
        raise too_many_operations(len(operations), MOST_OPERATIONS)
    patching = _Patching(copied(obj))
    try:
        for operation in operations:
            patching.apply(operation or {})
    except (_NotAppliedError, pointer.PointerError):
        raise does_not_apply() from None
    return patching.document


class _Patching:
    """The document on its way through the operations."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._copied_bytes = 0
        self._verbs: dict[Any, Callable[[Obj], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Obj) -> None:
        verb = operation.get("op")
        if not isinstance(verb, str) or verb not in self._verbs:
            raise _NotAppliedError
        self._verbs[verb](operation)

    def _put(self, path: list[str], value: Any) -> None:
        pointer.add(self._parent(path), path[-1], value)

    def _take(self, path: list[str]) -> Any:
        return pointer.remove(self._parent(path), path[-1])

    def _parent(self, path: list[str]) -> Any:
        """What holds the last key of the path. Only `replace` and `test` may name the whole document."""
        if not path:
            raise _NotAppliedError
        return pointer.get(self.document, path[:-1])

    def _found(self, path: list[str]) -> Any:
        """What the path leads to; of a map, null for a key that it does not have."""
        parent = self._parent(path)
        return parent.get(path[-1]) if isinstance(parent, dict) else pointer.step(parent, path[-1])

    def _add(self, operation: Obj) -> None:
        self._put(_path(operation, "path"), copied(operation.get("value")))

    def _remove(self, operation: Obj) -> None:
        self._take(_path(operation, "path"))

    def _replace(self, operation: Obj) -> None:
        path, value = _path(operation, "path"), copied(operation.get("value"))
        if path:
            pointer.replace(self._parent(path), path[-1], value)
        elif isinstance(value, dict | list):
            self.document = value
        else:
            raise _NotAppliedError

    def _move(self, operation: Obj) -> None:
        self._put(_path(operation, "path"), self._take(_path(operation, "from")))

    def _copy(self, operation: Obj) -> None:
        value = copied(self._found(_path(operation, "from")))
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > MOST_COPIED_BYTES:
            raise _NotAppliedError
        self._put(_path(operation, "path"), value)

    def _test(self, operation: Obj) -> None:
        path, wanted = _path(operation, "path"), operation.get("value")
        if not same(self._found(path) if path else self.document, wanted):
            raise _NotAppliedError


def _path(operation: Obj, field: str) -> list[str]:
    return pointer.tokens(operation.get(field))


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values, in which true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    return bool(left == right)
