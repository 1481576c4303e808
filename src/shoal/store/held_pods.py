"""Finds pods and groups that are held before any node is considered, by a queue or by missing volumes, with the message
that the responsible controller or kube-scheduler would write.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec


class QueueChange(msgspec.Struct, frozen=True):
    """A field of an object of Volcano or KAI, with a value that may let a held pod go. It has to be tried."""

    kind: str
    """As kubectl takes it: `queues.scheduling.volcano.sh`, `pod`."""
    name: str
    """`namespace/name`, or a name alone."""
    path: tuple[str, ...]
    before: str | float | None
    after: str | float


class HeldPod(msgspec.Struct, frozen=True):
    code: str
    """The reason that the controllers of such queues give: NotEnoughResources, OverLimit, ..."""
    message: str
    help: str = ""
    queue: str = ""
    """`Volcano queue x`; empty where the queue is unknown, or where no queue holds the pod."""
    group: str = ""
    """namespace/name of the group that is held as a whole."""
    changes: tuple[tuple[QueueChange, ...], ...] = ()
    """Alternatives; the changes of one belong together."""

    @property
    def queue_name(self) -> str:
        """The name alone, as pods and groups have it."""
        return self.queue.rpartition(" ")[2]


Hold = tuple[str, ...] | HeldPod
"""The names of scheduling gates, or the message of a queue."""


def pods_of(gated: Mapping[str, Hold], existing: Container[str]) -> list[str]:
    """The pods among what is held. A group that has no pods yet is held under its own name. `existing`: the pods that
    have objects."""
    return [
        key for key, hold in gated.items() if key in existing or not (isinstance(hold, HeldPod) and hold.group == key)
    ]
