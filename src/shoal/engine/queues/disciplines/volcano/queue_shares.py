"""Reads the amounts of each queue from a session: what it has allocated, deserves, may use, and has admitted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.engine.queues.disciplines.volcano.amounts import Figures, dominant_share
from shoal.engine.queues.disciplines.volcano.plugins.capacity import Capacity
from shoal.engine.queues.disciplines.volcano.plugins.proportion import Proportion
from shoal.engine.queues.disciplines.volcano.session import Session


class QueueShares(msgspec.Struct, frozen=True):
    """Amounts in the engine's units; those of descendants are included, except in `deserved`."""

    allocated: Figures
    deserved: Figures
    """By the plugin that shares quota: by weight, or as the queue declares it within its real capability."""
    guarantee: Figures
    elastic: Figures
    """What jobs have allocated beyond their `minResources`: others may get it first."""
    inqueue: Figures
    """What admitted jobs have not allocated yet of their `minResources`."""
    request: Figures = {}
    """Allocated and pending."""
    real_capability: Figures = {}
    """What it may use at most; resources that are not named are not limited."""
    share: float = 0.0
    """The largest allocated part of anything that it deserves."""


def queue_shares(session: Session) -> dict[str, QueueShares]:
    """By queue, as a session would begin now."""
    accounts, deserved, limits = session.accounts, _deserved(session), _real_capability(session)
    return {
        name: QueueShares(
            accounts.allocated(name),
            deserved.get(name, queue.deserved),
            queue.guarantee,
            accounts.surplus(name),
            accounts.reserved(name),
            accounts.request(name),
            limits.get(name, queue.capability),
            dominant_share(accounts.allocated(name), deserved.get(name, queue.deserved)),
        )
        for name, queue in session.forest.queues.items()
    }


def _deserved(session: Session) -> Mapping[str, Figures]:
    for plugin in session.plugins:
        if isinstance(plugin, Capacity | Proportion):
            return plugin.deserved
    return {}


def _real_capability(session: Session) -> Mapping[str, Figures]:
    for plugin in session.plugins:
        if isinstance(plugin, Capacity | Proportion):
            return plugin.real_capability
    return {}
