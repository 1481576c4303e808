"""What is written on a pod beside its specification, and the pod as its standing and its gang are read from it."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import Pod, PodSpec, PodStatus, SchedulingGroup, WorkloadReference
from shoal.api.wire import ApiStruct
from shoal.store.live.item import Item
from shoal.store.watched.pod_heads import Head, Spec, is_there


class Words(msgspec.Struct, frozen=True, gc=False):
    """What is written on a pod beside its specification."""

    labels: dict[str, str]
    annotations: dict[str, str]


class _Owner(ApiStruct, frozen=True):
    kind: str = ""
    name: str = ""
    controller: bool = False


_words = msgspec.json.Decoder(dict[str, str])
_owners = msgspec.json.Decoder(tuple[_Owner, ...])
_group = msgspec.json.Decoder(SchedulingGroup)
_workload = msgspec.json.Decoder(WorkloadReference)


def pod_of(item: Item, head: Head, spec: Spec, words: Words) -> Pod:
    """The pod as far as its standing and its gang are read from it."""
    meta = head.metadata
    owners = tuple(
        OwnerReference(kind=owner.kind, name=owner.name, controller=owner.controller) for owner in owners_of(head)
    )
    return Pod(
        metadata=ObjectMeta(
            name=item.name,
            namespace=item.namespace,
            uid=item.uid,
            labels=words.labels,
            annotations=words.annotations,
            owner_references=owners,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=PodSpec(
            node_name=spec.node_name,
            scheduling_group=_group.decode(spec.scheduling_group) if is_there(spec.scheduling_group) else None,
            workload_ref=_workload.decode(spec.workload_ref) if is_there(spec.workload_ref) else None,
        ),
        status=PodStatus(phase=head.status.phase, start_time=head.status.start_time),
    )


def words_of_head(head: Head) -> Words:
    return Words(_texts(head.metadata.labels), _texts(head.metadata.annotations))


def owners_of(head: Head) -> tuple[Any, ...]:
    raw = head.metadata.owner_references
    return _owners.decode(raw) if is_there(raw) else ()


def _texts(raw: msgspec.Raw) -> dict[str, str]:
    return _words.decode(raw) if is_there(raw) else {}
