"""The view of a queued pod: the fields that its admission reads."""

from __future__ import annotations

import msgspec
from msgspec import field

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.api.partial import PartialPodSpec, PartialPodStatus
from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.item import Item, Seen
from shoal.controllers.queued_pods.kueue_names import GATE, MANAGED, PARENT, QUEUE_LABEL, TERMINATION_TARGET
from shoal.controllers.queued_work.quota_condition import QUOTA_CONDITION, Fault

_MARK = MANAGED.encode()


class QueuedPod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: PartialPodSpec = field(default_factory=PartialPodSpec)
    status: PartialPodStatus = field(default_factory=PartialPodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def queue(self) -> str:
        return self.metadata.labels.get(QUEUE_LABEL, "")

    @property
    def parent(self) -> str:
        """The kind of owner that is queued: `statefulset`, `deployment`, ..."""
        return self.metadata.annotations.get(PARENT, "")

    def controller(self) -> OwnerReference | None:
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)

    def is_held(self) -> bool:
        return any(gate.name == GATE for gate in self.spec.scheduling_gates)

    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def is_finished(self) -> bool:
        return self.status.phase in TERMINAL_PHASES

    def is_over(self) -> bool:
        """It uses no capacity any more and will not use any again."""
        if self.is_finished():
            return True
        return self.is_terminating() and (not self.spec.node_name or self.metadata.deletion_grace_period_seconds == 0)

    def is_lost(self) -> bool:
        """It failed, or was deleted before it succeeded: a replacement may be needed."""
        return self.status.phase != "Succeeded" and self.is_over()

    def runs(self) -> bool:
        """It may use capacity: it is ungated and has not ended."""
        return not self.is_held() and not self.is_over()

    def is_ready(self) -> bool:
        if self.status.phase == "Succeeded":
            return True
        return self.status.is_ready()

    def fault(self) -> Fault | None:
        """The fault in its present condition."""
        return next(((one.reason, one.message) for one in self.status.conditions if one.type == QUOTA_CONDITION), None)

    def was_stopped(self) -> bool:
        """This controller stopped it."""
        return self.status.is_true(TERMINATION_TARGET)

    def has_finalizer(self) -> bool:
        return MANAGED in self.metadata.finalizers

    def age(self) -> tuple[float, str]:
        created = self.metadata.creation_timestamp
        return (0.0 if created is None else created.timestamp(), self.metadata.name)


_seen = Seen(QueuedPod)


def queued_pod(item: Item) -> QueuedPod | None:
    """None for a pod that is not queued. Most pods are not decoded at all."""
    if _MARK not in item.data:
        return None
    pod = _seen(item)
    return pod if pod.metadata.labels.get(MANAGED) == "true" else None
