"""The shipped table of fields: what `tools/kubernetes_protobuf.py` writes and `messages` reads."""

from __future__ import annotations

import msgspec


class StoredField(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    number: int
    name: str
    """In JSON; empty for a message whose members are in the outer object."""
    type: str
    """string, bytes, int, uint, bool, float, double, message, or a type with a JSON form of its own (`special`)."""
    message: str = ""
    is_list: bool = False
    is_map: bool = False
    keeps_zero: bool = False
    """Whether a zero is a value that was set; otherwise Go leaves it out of JSON."""


class StoredTable(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    """The message of a kind, by `apiVersion kind`."""
    messages: dict[str, tuple[StoredField, ...]]
