"""Pods, and groups without pods, that are kept back before any node is looked at, by a queue or by volumes that are not
there: whose word it is, in the words that the controllers of such queues, and kube-scheduler, write themselves."""

from __future__ import annotations

import msgspec


class HeldPod(msgspec.Struct, frozen=True):
    code: str
    """The reason that the controllers of such queues give: NotEnoughResources, OverLimit, ..."""
    message: str
    help: str = ""
    queue: str = ""
    """`Volcano queue x`; empty where it is not known which, or where no queue keeps it."""
    group: str = ""
    """namespace/name of the group that is kept back whole."""


Hold = tuple[str, ...] | HeldPod
"""The names of scheduling gates, or a queue's word."""
