"""Reports driver upgrades as Events: each new state on its Node, a stopped rollout on the object with the policy."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.operator.upgrades.decision import UpgradeDecision
from shoal.operator.upgrades.nodes import UpgradeNode
from shoal.operator.upgrades.states import UpgradeState

REASON, FAILED = "DriverUpgrade", "DriverUpgradeFailed"
STOPPED, INVALID = "DriverUpgradesStopped", "InvalidUpgradePolicy"
_MOST_NAMES = 3


class UpgradeReports:
    def __init__(self, context: Context) -> None:
        self._events = context.events
        self._stopped: dict[str, frozenset[str]] = {}
        """The failed nodes, by the uid of the object with the policy, as `_refused`."""
        self._refused: dict[str, str] = {}

    def moved(self, node: Item, decision: UpgradeDecision) -> None:
        """The node has a new state."""
        has_failed = decision.state == UpgradeState.FAILED
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": node.name, "uid": node.name}}
        words = f"The driver upgrade is in state {decision.state}: {decision.reason}"
        if has_failed:
            self._events.record(about, FAILED, words, type_="Warning")
        else:
            self._events.record(about, REASON, words)

    def rollout(self, kind: Kind, policy_item: Item, nodes: Sequence[UpgradeNode]) -> None:
        """No further node starts while one has failed; said once for each set of failed nodes."""
        failed = sorted(node.name for node in nodes if node.state == UpgradeState.FAILED)
        waiting = sum(node.state == UpgradeState.UPGRADE_REQUIRED for node in nodes)
        if frozenset(failed) == self._stopped.get(policy_item.uid, frozenset()):
            return
        self._stopped[policy_item.uid] = frozenset(failed)
        if not failed:
            return
        more = f" and {len(failed) - _MOST_NAMES} more" if len(failed) > _MOST_NAMES else ""
        words = (
            f"The driver upgrade failed on node {', '.join(failed[:_MOST_NAMES])}{more}; {waiting} nodes wait until "
            f"the driver runs there. See the Events of the node and the logs of its driver pod"
        )
        self._events.record(_about(kind, policy_item), STOPPED, words, type_="Warning")

    def refused(self, kind: Kind, policy_item: Item, why: str) -> None:
        """The upgrade policy cannot be read; said once."""
        if why != self._refused.get(policy_item.uid):
            self._refused[policy_item.uid] = why
            self._events.record(_about(kind, policy_item), INVALID, f"No driver is upgraded: {why}", type_="Warning")

    def accepted(self, policy_item: Item) -> None:
        """The upgrade policy can be read."""
        self._refused.pop(policy_item.uid, None)


def _about(kind: Kind, item: Item) -> Obj:
    metadata = {"name": item.name, "uid": item.uid}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata}
