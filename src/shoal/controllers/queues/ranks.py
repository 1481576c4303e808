"""Which of the places kept for a pod set stands for a pod that has an index of its own: the place of its rank.

Places are numbered in the order of the admission's domains, so ranks that talk to each other are near each other.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.kueue import Workload


class Ranks:
    """Of the pods of one workload."""

    def __init__(self, workload: Workload | None) -> None:
        sets = workload.spec.pod_sets if workload is not None else ()
        self._wishes = {one.name: (one.topology_request, one.count) for one in sets if one.topology_request is not None}

    def of(self, pod_set: str, labels: Mapping[str, str]) -> int | None:
        """None where nobody knows: no labels tell it, or not as numbers."""
        wish, count = self._wishes.get(pod_set, (None, 0))
        index = labels.get(wish.pod_index_label or "", "") if wish is not None else ""
        if wish is None or not index.isdecimal():
            return None
        part = labels.get(wish.sub_group_index_label or "", "0")
        parts = wish.sub_group_count or 1
        return int(part) * (count // parts) + int(index) if part.isdecimal() else None
