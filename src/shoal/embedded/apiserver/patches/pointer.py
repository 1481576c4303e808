"""JSON pointers (RFC 6901) into a document that is being patched, as the library behind Kubernetes reads them.

It takes more than the RFC: negative indices count from the end of a list, an index may have a sign and leading zeros,
and text before the first slash is ignored.
"""

from __future__ import annotations

import re
from typing import Any

_END = "-"
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


class PointerError(Exception):
    """The pointer leads nowhere."""


def tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and "/" not in pointer):
        raise PointerError
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def get(document: Any, path: list[str]) -> Any:
    found = document
    for token in path:
        found = step(found, token)
    return found


def step(parent: Any, token: str) -> Any:
    if isinstance(parent, dict):
        if token not in parent:
            raise PointerError
        return parent[token]
    if isinstance(parent, list):
        return parent[index(token, len(parent))]
    raise PointerError


def index(token: str, length: int) -> int:
    """The place of an item that is there, or with `length` one more than there are, of one to insert."""
    if not _INDEX.fullmatch(token):
        raise PointerError
    place = int(token)
    if place < 0:
        place += length
    if not 0 <= place < length:
        raise PointerError
    return place


def add(parent: Any, token: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if token == _END else index(token, len(parent) + 1), value)
    else:
        raise PointerError


def remove(parent: Any, token: str) -> Any:
    found = step(parent, token)
    if isinstance(parent, dict):
        del parent[token]
    else:
        del parent[index(token, len(parent))]
    return found


def replace(parent: Any, token: str, value: Any) -> None:
    """A key that a map does not have is added: against the RFC, as the library behind Kubernetes does."""
    if isinstance(parent, dict):
        parent[token] = value
    elif isinstance(parent, list):
        parent[index(token, len(parent))] = value
    else:
        raise PointerError
