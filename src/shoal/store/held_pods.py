"""Finds pods and groups that are held before any node is considered, by a queue or by missing volumes, with the message
that the responsible controller or kube-scheduler would write.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec


class HeldPod(msgspec.Struct, frozen=True):
    code: str
    """The reason that the controllers of such queues give: NotEnoughResources, OverLimit, ..."""
    message: str
    help: str = ""
    queue: str = ""
    """`Volcano queue x`; empty where the queue is unknown, or where no queue holds the pod."""
    group: str = ""
    """namespace/name of the group that is held as a whole."""


Hold = tuple[str, ...] | HeldPod
"""The names of scheduling gates, or the message of a queue."""


def pods_of(gated: Mapping[str, Hold], existing: Container[str]) -> list[str]:
    """The pods among what is held. A group that has no pods yet is held under its own name. `existing`: the pods that
    have objects."""
    return [
        key for key, hold in gated.items() if key in existing or not (isinstance(hold, HeldPod) and hold.group == key)
    ]
