"""Filters nodes for requests of parts of GPUs: only reserved nodes pass while other schedulers place pods with GPUs.

Another scheduler counts requests for `nvidia.com/gpu` and sees no part of a GPU: it would bind pods with whole GPUs to
devices that are in use. The taint `shoal.dev/gpu-sharing` keeps its pods off a node. Pods that ask for parts of GPUs
tolerate it without saying so.

Rejected: a pod that holds the whole GPU for others to see, as KAI has them. It takes an image, quota and a device that
the device plugin chooses, and it has to end exactly when the last part does.
"""

from __future__ import annotations

import numpy as np

from shoal.api.taints import HARD_EFFECTS, Toleration
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_demand import PARTS
from shoal.engine.device_notation.names import SHARING_TAINT
from shoal.engine.filters.rule import Rows, Verdicts
from shoal.engine.reasons import Code

_TOLERATION = Toleration(SHARING_TAINT, "Exists", effect="NoSchedule")


def tolerations_of(ask: Ask) -> tuple[Toleration, ...]:
    """The pod's own, and what its kind of ask tolerates by itself."""
    return (*ask.tolerations, _TOLERATION) if isinstance(ask.devices, PARTS) else ask.tolerations


class SharedGpus:
    code = Code.SHARING_UNSEEN

    def passes(self, cluster: Cluster, ask: Ask, rows: Rows) -> Verdicts | None:
        if not cluster.others_place_gpus or not isinstance(ask.devices, PARTS):
            return None
        kept = np.fromiter(
            (
                any(taint.key == SHARING_TAINT and taint.effect in HARD_EFFECTS for taint in taints)
                for taints in cluster.taints.sets
            ),
            np.bool_,
            len(cluster.taints.sets),
        )
        passes: Verdicts = kept.take(cluster.taints.code.take(rows)) | (cluster.devices.count.take(rows) == 0)
        return passes

    def detail(self, _cluster: Cluster, _ask: Ask, _row: int) -> str:
        return ""
