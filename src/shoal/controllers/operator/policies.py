"""Follows the ClusterPolicies, finds the one that applies, and writes their statuses."""

from __future__ import annotations

import copy
from typing import Any

from shoal.client import conditions
from shoal.client.cluster_policies import ranked_policies
from shoal.client.conditions import WriteTime
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import MISPLACED_CLUSTER_POLICIES
from shoal.client.item import Item, Obj
from shoal.client.kind import Kind
from shoal.client.port import Patch
from shoal.operator.progress.policy_status import PolicyStatus


class Policies:
    """The caller follows the kinds that the server has."""

    def __init__(self, context: Context, namespace: str) -> None:
        self._context = context
        self._namespace = namespace
        self._said: dict[str, tuple[str, ...]] = {}
        """The Events about each policy that were recorded, by uid."""

    def ranked(self) -> list[tuple[Kind, Item]]:
        """The policy that applies, and then the ignored ones."""
        return ranked_policies(self._context.informers)

    def warn(self, kind: Kind, item: Item, reason: str, words: tuple[str, ...]) -> None:
        """Record each as an Event once, until they change."""
        if self._said.get(f"{item.uid} {reason}") == words:
            return
        self._said[f"{item.uid} {reason}"] = words
        for one in words:
            self._context.events.record(about(kind, item), reason, one, type_="Warning")

    async def write(self, kind: Kind, item: Item, status: PolicyStatus) -> None:
        """Writes only if something differs. The copied kind has no status."""
        if kind == MISPLACED_CLUSTER_POLICIES:
            return
        before: dict[str, Any] = item.obj().get("status") or {}
        after = copy.deepcopy(before)
        after |= {"state": status.state, "namespace": self._namespace}
        clock, generation = self._context.clock, item.obj()["metadata"].get("generation", 0)
        moment = WriteTime(clock.text(), clock.seconds(), generation)
        for name, says in status.conditions():
            conditions.put(after, name, says, moment)
        for one in after["conditions"] if generation else ():
            # Also of conditions that remain as they were: clients wait for the generation that the operator has seen.
            one["observedGeneration"] = generation
        changes = conditions.difference(before, after)
        if not changes:
            return
        known = {"uid": item.uid, "resourceVersion": str(item.version)}
        await self._context.api.patch(
            kind, "", item.name, Patch("merge", {"metadata": known, "status": changes}), "status"
        )
        if before.get("state") != status.state:
            words = status.message or f"the policy is {status.state}"
            self._context.events.record(
                about(kind, item), status.reason, words, type_="Normal" if status.is_ready else "Warning"
            )


def about(kind: Kind, item: Item) -> Obj:
    """The object as the subject of an Event."""
    meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": meta}
