"""What would admit a workload that waits: the smallest changes, found by trying them."""

from shoal.engine.queues.remedies.remedy import Change, Effect, Kind, Remedy
from shoal.engine.queues.remedies.search import remedies
from shoal.engine.queues.remedies.trials import Budget

__all__ = ["Budget", "Change", "Effect", "Kind", "Remedy", "remedies"]
