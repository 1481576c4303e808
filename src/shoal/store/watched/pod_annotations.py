"""Reads the metadata of a pod from which its identity and its gang are derived."""

from __future__ import annotations

import msgspec

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.pod import Pod, PodSpec, PodStatus, SchedulingGroup, WorkloadReference
from shoal.client.item import Item
from shoal.store.watched.pod_heads import PodHead, is_there


class PodAnnotationFields(msgspec.Struct, frozen=True, gc=False):
    """The labels, annotations and owners of a pod."""

    labels: dict[str, str]
    annotations: dict[str, str]
    allocated: str = ""
    """The devices that the kubelet allocated, as in `Status.allocated`."""


_group = msgspec.json.Decoder(SchedulingGroup)
_workload = msgspec.json.Decoder(WorkloadReference)


def pod_of(item: Item, head: PodHead) -> Pod:
    """The parts of the pod from which its identity and gang are read."""
    meta, spec = head.metadata, head.spec
    owners = tuple(
        OwnerReference(kind=owner.kind, name=owner.name, controller=owner.controller) for owner in meta.owner_references
    )
    return Pod(
        metadata=ObjectMeta(
            name=item.name,
            namespace=item.namespace,
            uid=item.uid,
            labels=meta.labels,
            annotations=meta.annotations,
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


def words_on(head: PodHead) -> PodAnnotationFields:
    return PodAnnotationFields(head.metadata.labels, head.metadata.annotations, head.status.allocated())
