"""What a Go program knows of its own struct types, read from the binary.

The published OpenAPI schemas do not say which fields Go leaves out when they are empty, which it always writes, and
what Go calls a type in an error message. A kubectl binary does: it links the API types of its release with their field
names, tags and types, for Go's reflection needs them. This module reads those tables; it runs nothing.

Promises: read-only, no dependency, ELF binaries of little-endian 64-bit machines built by Go 1.18 or newer. The layout
is that of Go's `internal/abi`; a binary that does not fit stops with an error rather than giving half the types.
Rejected: parsing Go sources, which would need a Go parser and a checkout of Kubernetes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NOBITS = 8
_NAMED, _EXTRA_STAR, _HAS_PACKAGE = 4, 2, 1
_ARRAY, _MAP, _POINTER, _SLICE, _STRUCT = 17, 21, 22, 23, 25
_KINDS = {1: "bool", 2: "int", 5: "int32", 6: "int64", 8: "uint8", 10: "uint32", 11: "uint64", 13: "float32"} | {
    14: "float64",
    20: "interface",
    24: "string",
    _ARRAY: "array",
    _MAP: "map",
    _POINTER: "pointer",
    _SLICE: "slice",
    _STRUCT: "struct",
}


class GoField(NamedTuple):
    name: str
    tags: str
    type: GoType
    is_embedded: bool

    def tag(self, key: str) -> str:
        """The value of `json` in `json:"name,omitempty" protobuf:"..."`."""
        _, found, rest = self.tags.partition(f'{key}:"')
        return rest.partition('"')[0] if found else ""


class GoType:
    """One type; elements and fields are read when asked for, so that recursive types cost nothing."""

    def __init__(self, binary: Binary, address: int) -> None:
        self._binary = binary
        self._address = address
        base = binary.offset(address)
        flags, kind = binary.data[base + 20], binary.data[base + 23] & 31
        text = binary.name_at(binary.types + binary.int32(address + 40))[0]
        self.kind = _KINDS.get(kind, "other")
        self.text = text[1:] if flags & _EXTRA_STAR else text
        """As Go prints it: `v1.PodSpec`, `[]string`."""
        self.package = ""
        if kind == _STRUCT and flags & _NAMED and flags & _HAS_PACKAGE:
            self.package = binary.name_at(binary.types + binary.int32(address + 80))[0]

    def element(self) -> GoType:
        """What a pointer, slice, array or map holds."""
        return self._binary.type_at(self._binary.uint64(self._address + (56 if self.kind == "map" else 48)))

    def fields(self) -> Iterator[GoField]:
        first, count = self._binary.uint64(self._address + 56), self._binary.uint64(self._address + 64)
        for at in range(first, first + 24 * count, 24):
            name, tags, flags = self._binary.name_at(self._binary.uint64(at))
            yield GoField(name, tags, self._binary.type_at(self._binary.uint64(at + 8)), bool(flags & 8))


class Binary:
    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no little-endian 64-bit ELF binary")
        self._sections = self._read_sections()
        self.types = self._section(".rodata")[0]
        self._known: dict[int, GoType] = {}

    def _read_sections(self) -> dict[str, tuple[int, int, int]]:
        (start,) = struct.unpack_from("<Q", self.data, 0x28)
        count, names = struct.unpack_from("<HH", self.data, 0x3C)
        rows = [struct.unpack_from("<IIQQQQ", self.data, start + 64 * index) for index in range(count)]
        found = {}
        for name, kind, _, address, offset, size in rows:
            begin = rows[names][4] + name
            if kind != _NOBITS:
                found[self.data[begin : self.data.index(b"\0", begin)].decode()] = (address, offset, size)
        return found

    def _section(self, name: str) -> tuple[int, int, int]:
        if name not in self._sections:
            raise ValueError(f"no section {name}: not a Go binary")
        return self._sections[name]

    def offset(self, address: int) -> int:
        for start, offset, size in self._sections.values():
            if start <= address < start + size and start:
                return offset + address - start
        raise ValueError(f"address {address:#x} is in no section")

    def int32(self, address: int) -> int:
        return int(struct.unpack_from("<i", self.data, self.offset(address))[0])

    def uint64(self, address: int) -> int:
        return int(struct.unpack_from("<Q", self.data, self.offset(address))[0])

    def _text(self, at: int) -> tuple[str, int]:
        size = shift = 0
        while True:
            byte = self.data[at]
            size |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                return self.data[at : at + size].decode("utf-8", "replace"), at + size

    def name_at(self, address: int) -> tuple[str, str, int]:
        """A name, its tags and its flags."""
        at = self.offset(address)
        flags = self.data[at]
        name, at = self._text(at + 1)
        return name, self._text(at)[0] if flags & 2 else "", flags

    def type_at(self, address: int) -> GoType:
        if address not in self._known:
            self._known[address] = GoType(self, address)
        return self._known[address]

    def structs(self) -> dict[tuple[str, str], GoType]:
        """All named struct types by package path and name."""
        _, offset, size = self._section(".typelink")
        links = struct.unpack_from(f"<{size // 4}i", self.data, offset)
        waiting = [self.type_at(self.types + link) for link in links]
        seen: set[int] = set()
        found = {}
        while waiting:
            one = waiting.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if one.kind in ("pointer", "slice", "array", "map"):
                waiting.append(one.element())
            elif one.kind == "struct":
                waiting.extend(field.type for field in one.fields())
                if one.package:
                    found[one.package, one.text.rpartition(".")[2]] = one
        return found
