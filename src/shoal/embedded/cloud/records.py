"""Keeps the instances of the simulated cloud as ConfigMaps, one for each request.

The name of the ConfigMap is that of the request's token, so a repeated request finds what the first one created. What
is written is the state of the cloud: a process that is killed loses nothing, and the machines may be simulated by
another process than the one that requests them.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

import msgspec

from shoal.client.item import Item, Obj
from shoal.cloud.port import InstanceRequest

NAMESPACE: Final = "kube-system"
LABEL: Final = "shoal.dev/simulated-cloud"
_PREFIX: Final = "shoal-instances-"
_REQUEST, _CREATED, _DELETED = "request", "createdSeconds", "deleted"


class InstanceRecord(msgspec.Struct, frozen=True):
    """One request and what became of its instances."""

    request: InstanceRequest
    created_s: float
    deleted: frozenset[str] = frozenset()

    def ids(self) -> tuple[str, ...]:
        """Of the instances that were created, those that were deleted included."""
        return tuple(_digest(f"{self.request.token}/{index}", 17) for index in range(self.request.count))

    def present(self) -> Iterator[str]:
        return (each for each in self.ids() if each not in self.deleted)


def record_name(token: str) -> str:
    return _PREFIX + _digest(token, 20)


def _digest(text: str, length: int) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()[:length]


def record_object(record: InstanceRecord) -> Obj:
    return {
        "metadata": {"name": record_name(record.request.token), "namespace": NAMESPACE, "labels": {LABEL: "instances"}},
        "data": {
            _REQUEST: msgspec.json.encode(record.request).decode(),
            _CREATED: repr(record.created_s),
            _DELETED: ",".join(sorted(record.deleted)),
        },
    }


class _RecordMeta(msgspec.Struct):
    labels: dict[str, str] = {}


class _WrittenRecord(msgspec.Struct):
    metadata: _RecordMeta
    data: dict[str, str] = {}


def is_record(item: Item) -> bool:
    return item.namespace == NAMESPACE and item.name.startswith(_PREFIX)


def record_of(item: Item) -> InstanceRecord | None:
    """None for an object that is no record, or one that was made unreadable by hand."""
    if not is_record(item):
        return None
    found = item.read(_WrittenRecord)
    if LABEL not in found.metadata.labels:
        return None
    try:
        request = msgspec.json.decode(found.data.get(_REQUEST, ""), type=InstanceRequest)
        created_s = float(found.data.get(_CREATED, ""))
    except (msgspec.DecodeError, ValueError):
        return None
    deleted = found.data.get(_DELETED, "")
    return InstanceRecord(request, created_s, frozenset(filter(None, deleted.split(","))))
