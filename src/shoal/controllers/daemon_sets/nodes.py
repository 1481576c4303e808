"""Caches which nodes are eligible for each DaemonSet, and computes it again only when a deciding field changed.

The heartbeats of a thousand nodes cause no reconcile of a DaemonSet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.daemon_sets.eligibility import EligibilityRule, NodeEligibility, NodeView, rule_of
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Obj


class Nodes:
    def __init__(self, informer: Informer, changed: Callable[[], None]) -> None:
        """`changed` is called when the eligibility of a node may have changed."""
        self._sights: dict[str, NodeView] = {}
        self._changed = changed
        self._judged: dict[str, tuple[int, EligibilityRule, dict[str, tuple[NodeView, NodeEligibility]]]] = {}
        informer.on_change(self._on_change)

    def eligibility(self, daemon_set: Obj) -> Mapping[str, NodeEligibility]:
        meta = daemon_set["metadata"]
        generation, known = meta.get("generation", 0), self._judged.get(meta["uid"])
        if known is None or known[0] != generation:
            known = self._judged[meta["uid"]] = (generation, rule_of(daemon_set["spec"]["template"]["spec"]), {})
        _, rule, judged = known
        found = {}
        for name, node in self._sights.items():
            before = judged.get(name)
            if before is None or before[0] is not node:
                before = judged[name] = (node, rule.eligibility(node))
            found[name] = before[1]
        return found

    def forget(self, uid: str) -> None:
        self._judged.pop(uid, None)

    def _on_change(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._sights.pop(before.name, None)
                for _, _, judged in self._judged.values():
                    judged.pop(before.name, None)
                self._changed()
            return
        sight = after.read(NodeView)
        if self._sights.get(after.name) != sight:
            self._sights[after.name] = sight
            self._changed()
