"""The nodes as daemon sets judge them: kept between looks, judged again only when what decides has changed.

A thousand nodes report every few minutes that they are alive; none of that reaches a daemon set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.controllers.daemon_sets.eligibility import NodeSight, Rule, Verdict, rule_of
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item, Obj


class Nodes:
    def __init__(self, informer: Informer, changed: Callable[[], None]) -> None:
        """`changed` is called when some node is judged differently than before, perhaps."""
        self._sights: dict[str, NodeSight] = {}
        self._changed = changed
        self._judged: dict[str, tuple[int, Rule, dict[str, tuple[NodeSight, Verdict]]]] = {}
        informer.on_change(self._on_change)

    def verdicts(self, daemon_set: Obj) -> Mapping[str, Verdict]:
        meta = daemon_set["metadata"]
        generation, known = meta.get("generation", 0), self._judged.get(meta["uid"])
        if known is None or known[0] != generation:
            known = self._judged[meta["uid"]] = (generation, rule_of(daemon_set["spec"]["template"]["spec"]), {})
        _, rule, judged = known
        found = {}
        for name, node in self._sights.items():
            before = judged.get(name)
            if before is None or before[0] is not node:
                before = judged[name] = (node, rule.verdict(node))
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
        sight = after.read(NodeSight)
        if self._sights.get(after.name) != sight:
            self._sights[after.name] = sight
            self._changed()
