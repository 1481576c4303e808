"""Caches which nodes are eligible for each DaemonSet, and computes it again only when a deciding field changed.

The heartbeats of a thousand nodes cause no reconcile of a DaemonSet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.client.informer import Informer
from shoal.client.item import Item, Obj
from shoal.embedded.controllers.daemon_sets.eligibility import DaemonNode, EligibilityRule, NodeEligibility, rule_of


class DaemonNodes:
    def __init__(self, informer: Informer, changed: Callable[[], None]) -> None:
        """`changed` is called when the eligibility of a node may have changed."""
        self._views: dict[str, DaemonNode] = {}
        self._changed = changed
        self._eligibility: dict[str, tuple[int, EligibilityRule, dict[str, tuple[DaemonNode, NodeEligibility]]]] = {}
        informer.on_change(self._on_change)

    def eligibility(self, daemon_set: Obj) -> Mapping[str, NodeEligibility]:
        meta = daemon_set["metadata"]
        generation, known = meta.get("generation", 0), self._eligibility.get(meta["uid"])
        if known is None or known[0] != generation:
            known = self._eligibility[meta["uid"]] = (generation, rule_of(daemon_set["spec"]["template"]["spec"]), {})
        _, rule, by_node = known
        found = {}
        for name, node in self._views.items():
            before = by_node.get(name)
            if before is None or before[0] is not node:
                before = by_node[name] = (node, rule.eligibility(node))
            found[name] = before[1]
        return found

    def forget(self, uid: str) -> None:
        self._eligibility.pop(uid, None)

    def _on_change(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._views.pop(before.name, None)
                for _, _, by_node in self._eligibility.values():
                    by_node.pop(before.name, None)
                self._changed()
            return
        view = after.read(DaemonNode)
        if self._views.get(after.name) != view:
            self._views[after.name] = view
            self._changed()
