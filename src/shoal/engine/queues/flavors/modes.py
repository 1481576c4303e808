"""Classifies how one flavor suits a request (no fit, no candidates, preempt, reclaim, fit), and asks the search for
victims about the modes between.

Quota alone tells only the ends. Whether room could be made is a question to the search for victims; it is asked through
an `Oracle`, so that flavors are chosen without knowing how victims are.

Rejected: the three modes that people see (fit, preempt, no fit). Taking back lent quota is better than stopping one's
own, and a flavor without preemption candidates is worse than either; both look like `Preempt` from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import msgspec

from shoal.engine.queues.clusterqueue import ClusterQueue
from shoal.engine.queues.facts import FlavorResource, WorkloadFacts


class Mode(IntEnum):
    """Of one resource in one flavor; more is better."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """There would be room, but no workload may be preempted for it."""
    PREEMPT = 2
    RECLAIM = 3
    """Only others would be stopped, for what they borrowed."""
    FIT = 4


class PreemptionPossibility(NamedTuple):
    """Of the oracle."""

    mode: Mode
    """NO_CANDIDATES, PREEMPT or RECLAIM."""
    borrow: int
    """The borrowing level once the victims are gone."""


Oracle = Callable[[ClusterQueue, WorkloadFacts, FlavorResource, int], PreemptionPossibility]
"""Would preemption make room for this amount?"""


class Choice(msgspec.Struct, frozen=True):
    """The flavor that a resource got."""

    flavor: str
    mode: Mode
    borrow: int
    """The borrowing level: 0 for own quota, else the height of the lowest cohort that holds the request."""
    tried: int
    """The last flavor that was looked at, for the search to go on there; -1 where all were."""
