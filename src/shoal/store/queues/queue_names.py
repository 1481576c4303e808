"""Determines the local queue that a job requests.

The label on the job counts. Users sometimes set it as an annotation or on the pod template, where Kueue does not read
it. Such a name is used, with a warning, where the namespace has a queue of that name. Where it has none, the job is
held under the requested name, because the user did certainly not intend that it runs outside all quota.
"""

from __future__ import annotations

from shoal.api.decode import Unknown
from shoal.api.kueue import LocalQueue
from shoal.api.kueue.probable_mistakes import QUEUE_NAME, misplaced_queue
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.store.inventory import Inventory, Placed
from shoal.units.errors import Where, excerpt

DEFAULT_QUEUE = "default"


class QueueNames:
    """The local queues by namespace."""

    def __init__(self, inventory: Inventory) -> None:
        self._queues: dict[str, dict[str, Placed[LocalQueue]]] = {}
        for placed in inventory.of(LocalQueue):
            meta = placed.value.metadata
            self._queues.setdefault(meta.namespace, {})[meta.name] = placed
        self._reported: dict[str, int] = {}
        """Warnings, and the number of further objects that each applies to."""
        self._missed: dict[tuple[str, str], str] = {}

    def asked_by(self, meta: ObjectMeta, placed: Placed[ApiStruct] | Placed[Unknown]) -> str:
        """The queue name; empty for an object that requests no queue. `meta`: the metadata of the object."""
        name = meta.labels.get(QUEUE_NAME, "")
        if name:
            self.miss(meta.namespace, name, placed.at("metadata.labels").key(QUEUE_NAME))
            return name
        slip = misplaced_queue(placed.value)
        if slip is None:
            return DEFAULT_QUEUE if DEFAULT_QUEUE in self._queues.get(meta.namespace, {}) else ""
        if not self.miss(meta.namespace, slip.name, placed.at(slip.path)):
            what = "is on the pod template" if slip.is_label else "is an annotation"
            taken = "where no cluster looks for it; taken for a label of the object itself"
            self._reported.setdefault(f"{placed.at(slip.path)}: {excerpt(slip.name)} {what}, {taken}", 0)
        return slip.name

    def miss(self, namespace: str, name: str, where: Where) -> bool:
        """Whether there is no such queue, which is reported once for all objects that request it."""
        known = self._queues.get(namespace, {})
        if name in known:
            return False
        line = self._missed.get((namespace, name))
        if line is not None:
            self._reported[line] += 1
            return True
        through = sorted(queue for queue, placed in known.items() if placed.value.spec.cluster_queue == name)
        if through:
            fix = f"; {excerpt(name)} is a ClusterQueue, and {', '.join(through)} its LocalQueue here"
        else:
            fix = f"; there are {', '.join(sorted(known))}" if known else ""
        line = self._missed[namespace, name] = f"{where}: no LocalQueue {name} in {namespace}: held back{fix}"
        self._reported[line] = 0
        return True

    def warnings(self) -> list[str]:
        return [line + (f"; so are {more:,} more" if more else "") for line, more in self._reported.items()]
