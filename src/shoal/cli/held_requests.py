"""What pods ask for that queues or scheduling gates hold back: the facts have only the pods that may be placed."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.cli.manifests import Loaded
from shoal.engine.charges import Charge


class HeldRequests:
    def __init__(self, loaded: Loaded) -> None:
        self._cluster = loaded.cluster
        self._asks = dict(loaded.manifests.held_asks)
        if loaded.queued is not None:
            for facts in loaded.queued.workloads:
                self._asks |= loaded.queued.pods.asks_of(facts.key)

    def charge(self, pod: str) -> Charge | None:
        """Also of a pod that a queued job will create; None where nothing is known of the pod."""
        ask = self._asks.get(pod)
        return None if ask is None else self._cluster.charge(ask)

    def gpu_milli(self, pods: Iterable[str]) -> int:
        return sum(charge.gpu_milli for pod in pods if (charge := self.charge(pod)) is not None)
