"""Which of the places kept for a pod set stands for a pod that has an index of its own: the place of its rank.

Places are numbered in the order of the admission's domains, so ranks that talk to each other are near each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.kueue import Workload
from shoal.units.numbers import whole_of


class Ranks:
    """Of the pods of one workload."""

    def __init__(self, workload: Workload | None) -> None:
        sets = workload.spec.pod_sets if workload is not None else ()
        self._wishes = {one.name: (one.topology_request, one.count) for one in sets if one.topology_request is not None}

    def of(self, pod_set: str, labels: Mapping[str, str]) -> int | None:
        """None where nobody knows: no labels tell it, or not as numbers."""
        wish, count = self._wishes.get(pod_set, (None, 0))
        index = whole_of(labels.get(wish.pod_index_label or "", "")) if wish is not None else None
        if wish is None or index is None:
            return None
        part = whole_of(labels.get(wish.sub_group_index_label or "", "0"))
        parts = wish.sub_group_count or 1
        return part * (count // parts) + index if part is not None else None
