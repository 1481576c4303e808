"""Detects changes of a pod's status alone: most changes are of that kind and concern no decision.

Compares the bytes of the pod before and after, and decodes only the status. A pod in another format than that of API
servers counts as changed altogether.

Rejected: a hash of the rest of each pod. Fifty thousand hashes would be computed at the start, and most pods never
change again.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw

from shoal.client.item import Item
from shoal.client.json_sections import beginning_of, status_of
from shoal.store.watched.pod_heads import Status

_CLAIMS = b'"resourceClaimStatuses"'
"""Fields of the status that are part of the ask of a pod."""


class StatusChange(NamedTuple):
    status: Status
    is_terminating: bool


class _RawPodMeta(msgspec.Struct, rename="camel", gc=False):
    """The metadata from which a pod is read; resourceVersion and managedFields change with the status."""

    labels: Raw = Raw()
    annotations: Raw = Raw()
    owner_references: Raw = Raw()
    deletion_timestamp: str | None = None


_metas = msgspec.json.Decoder(_RawPodMeta)
_statuses = msgspec.json.Decoder(Status)


def status_change(before: Item, after: Item) -> StatusChange | None:
    """None: more has changed, or the change cannot be determined."""
    old, new = before.data, after.data
    old_status, new_status = status_of(old), status_of(new)
    old_head, new_head = beginning_of(old), beginning_of(new)
    if old_status is None or new_status is None or old_head is None or new_head is None:
        return None
    if old[old_head.end : old_status[0]] != new[new_head.end : new_status[0]]:
        return None
    if _CLAIMS in new[new_status[0] :] or _CLAIMS in old[old_status[0] :]:
        return None
    try:
        was = _metas.decode(old[old_head.start : old_head.end])
        now = _metas.decode(new[new_head.start : new_head.end])
        status = _statuses.decode(new[new_status[1] : -1])
    except msgspec.DecodeError:
        return None
    return StatusChange(status, now.deletion_timestamp is not None) if _said(was) == _said(now) else None


def _said(meta: _RawPodMeta) -> tuple[bytes, bytes, bytes]:
    return bytes(meta.labels), bytes(meta.annotations), bytes(meta.owner_references)
