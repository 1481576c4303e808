"""Represents node pools: the part of a cluster, by a label of its nodes, in which a shard of KAI decides.

The nodes without the label are a pool too. Its value is empty.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.api.groups.kai import NODE_POOL_LABEL
from shoal.api.requirement import Requirement
from shoal.engine.cluster import Cluster


class NodePool(msgspec.Struct, frozen=True):
    value: str = ""
    key: str = NODE_POOL_LABEL

    @property
    def requirement(self) -> Requirement:
        """Which nodes are in it."""
        return Requirement(self.key, "In", (self.value,)) if self.value else Requirement(self.key, "DoesNotExist")


class NodePools(msgspec.Struct, frozen=True):
    """The node pools that have a shard, where shards divide a cluster."""

    profiles: Mapping[str, str]
    """Pool -> the profile of node preferences of its shard, or empty."""
    label: str = NODE_POOL_LABEL
    """The label that names the pool, on nodes, queues, PodGroups and pods."""


def pool_rows(cluster: Cluster, pool: NodePool | None) -> NDArray[np.int64]:
    """The rows of a pool; those of the whole cluster without one."""
    rows = cluster.alive[: cluster.rows].nonzero()[0]
    return rows if pool is None else rows[cluster.labels.satisfies(pool.requirement, rows)]
