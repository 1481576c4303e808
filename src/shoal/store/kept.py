"""Pods, and groups without pods, that a queue keeps back before any node is looked at: whose word it is, in the words
that this queue's controllers write themselves."""

from __future__ import annotations

import msgspec


class Kept(msgspec.Struct, frozen=True):
    code: str
    """The reason that the controllers of such queues give: NotEnoughResources, OverLimit, ..."""
    message: str
    help: str = ""
    queue: str = ""
    """`Volcano queue x`; empty where it is not known which."""
    group: str = ""
    """namespace/name of the group that is kept back whole."""


Hold = tuple[str, ...] | Kept
"""The names of scheduling gates, or a queue's word."""
