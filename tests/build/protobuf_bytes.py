"""Objects as protobuf bytes, written by hand, for tests of servers that read them.

Only what tests send: texts, nested messages and maps of texts, by field numbers. A library would need Kubernetes'
descriptors, which is what the server is tested for.
"""

from __future__ import annotations

from collections.abc import Mapping

MEDIA = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


def field(number: int, value: bytes | str) -> bytes:
    """A length-delimited field."""
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def whole_number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def text_map(number: int, values: Mapping[str, str]) -> bytes:
    return b"".join(field(number, field(1, key) + field(2, value)) for key, value in values.items())


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return _MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def configmap(name: str, data: Mapping[str, str]) -> bytes:
    return envelope("v1", "ConfigMap", field(1, field(1, name)) + text_map(2, data))


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
