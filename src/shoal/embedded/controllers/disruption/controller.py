"""Keeps the status of PodDisruptionBudgets up to date, and removes outdated DisruptionTarget conditions of pods.

A budget whose counts are unknown allows no disruption: a refused eviction can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.api.selectors import Selector, selector_of
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj, Seen
from shoal.client.kind import DISRUPTION_BUDGETS, PODS
from shoal.client.loop import Loop
from shoal.client.owned_pods.owner_wakeups import gather_s
from shoal.client.owned_pods.ownership import head
from shoal.client.port import Patch
from shoal.embedded.controllers.disruption.budgets import (
    DELETION_TIMEOUT,
    BudgetCounts,
    BudgetedPod,
    Disrupted,
    DisruptionBudget,
    counts,
    disrupted,
)
from shoal.embedded.controllers.disruption.scale import KINDS, Scales, UnknownScaleError

_ALLOWED = "DisruptionAllowed"
_TARGET = "DisruptionTarget"
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


_seen = Seen(BudgetedPod)


class _KnownBudget(msgspec.Struct, frozen=True, eq=False):
    """A budget with its parsed selector, which is compared with every pod of the namespace."""

    budget: DisruptionBudget
    selector: Selector


class DisruptionBudgets:
    def __init__(self, context: Context) -> None:
        of = context.informers.of
        self._context = context
        self._pods = of(PODS).index("namespace", lambda item: (item.namespace,))
        self._items = of(DISRUPTION_BUDGETS)
        self._scales = Scales(context)
        self._budgets: dict[str, dict[str, _KnownBudget]] = {}
        self._items.on_change(self._learn)

    def covering(self, item: Item) -> Iterator[Key]:
        """The budgets that cover a pod."""
        budgets = self._budgets.get(item.namespace)
        if budgets:
            labels = head(item).labels
            yield from [known.budget.key for known in budgets.values() if known.selector.matches(labels)]

    def gather_s(self, key: Key) -> float:
        return gather_s(self._pods.count(key[0]))

    def with_scale(self, item: Item) -> list[Key]:
        """Budgets that a change of a controller may affect."""
        budgets = [known.budget for known in self._budgets.get(item.namespace, {}).values()]
        return [budget.key for budget in budgets if budget.needs_scale]

    async def reconcile(self, key: Key) -> float | None:
        known, item = self._budgets.get(key[0], {}).get(key[1]), self._items.get(*key)
        if known is None or item is None:
            return None
        budget, selector = known.budget, known.selector
        pods = [_seen(one) for one in self._pods[key[0]] if selector.matches(head(one).labels)]
        obj = item.obj()
        if not pods:
            self._context.events.record(obj, "NoPods", "No matching pods found")
        let_go = disrupted(budget, pods, self._context.clock.now())
        for name in let_go.overdue:
            words = f"Pod was expected by PDB {key[0]}/{key[1]} to be deleted but it wasn't"
            self._context.events.record(
                _about(key[0], name, self._uid(key[0], name)), "NotDeleted", words, type_="Warning"
            )
        try:
            scale = await self._scale(budget, pods, obj)
        except UnknownScaleError as error:
            words = f"Failed to calculate the number of expected pods: {error}"
            self._context.events.record(obj, "CalculateExpectedPodCountFailed", words, type_="Warning")
            await self._fail(obj, words)
            return let_go.look_again_s
        await self._write(obj, counts(budget, pods, scale, let_go.going), let_go)
        return let_go.look_again_s

    async def _scale(self, budget: DisruptionBudget, pods: list[BudgetedPod], obj: Obj) -> int:
        if not budget.needs_scale:
            return len(pods)
        scale, unmanaged = await self._scales.of(pods)
        if unmanaged:
            words = _UNMANAGED.format(obj["spec"].get("selector"))
            self._context.events.record(obj, "UnmanagedPods", words, type_="Warning")
        return scale

    async def _write(self, obj: Obj, now: BudgetCounts, let_go: Disrupted) -> None:
        reason = "SufficientPods" if now.allowed > 0 else "InsufficientPods"
        status: Obj = {
            "currentHealthy": now.healthy,
            "desiredHealthy": now.desired,
            "expectedPods": now.expected,
            "disruptionsAllowed": now.allowed,
            "observedGeneration": obj["metadata"].get("generation", 0),
        }
        if let_go.going:
            before = obj.get("status", {}).get("disruptedPods", {})
            status["disruptedPods"] = {name: before[name] for name in let_go.going}
        await self._put(obj, status, (str(now.allowed > 0), reason, ""))

    async def _fail(self, obj: Obj, words: str) -> None:
        status = {**obj.get("status", {}), "disruptionsAllowed": 0}
        await self._put(obj, status, ("False", "SyncFailed", words))

    async def _put(self, obj: Obj, status: Obj, said: tuple[str, str, str]) -> None:
        before = obj.get("status", {})
        old = next((one for one in before.get("conditions", ()) if one["type"] == _ALLOWED), None)
        is_same = old is not None and old["status"] == said[0]
        condition = {
            "type": _ALLOWED,
            "status": said[0],
            "reason": said[1],
            "message": said[2],
            "observedGeneration": obj["metadata"].get("generation", 0),
            "lastTransitionTime": old["lastTransitionTime"] if old and is_same else self._context.clock.text(),
        }
        others = [one for one in before.get("conditions", ()) if one["type"] != _ALLOWED]
        status["conditions"] = [*others, condition]
        if status != before:
            obj["status"] = status
            await self._context.api.update(DISRUPTION_BUDGETS, obj, "status")

    def _uid(self, namespace: str, name: str) -> str:
        item = self._context.informers.of(PODS).get(namespace, name)
        return item.uid if item is not None else ""

    def _learn(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        budgets = self._budgets.setdefault(item.namespace, {})
        budgets.pop(item.name, None)
        if after is not None:
            budget = after.read(DisruptionBudget)
            budgets[item.name] = _KnownBudget(budget, selector_of(budget.spec.selector))
        if not budgets:
            del self._budgets[item.namespace]


def disruption_controller(context: Context) -> Controller:
    """Writes the status of every budget."""
    budgets = DisruptionBudgets(context)
    loop = Loop(context, budgets.reconcile)
    loop.follow(DISRUPTION_BUDGETS)
    loop.need(PODS)
    for kind in KINDS:
        loop.follow(kind, budgets.with_scale)

    def pod_changed(before: Item | None, after: Item | None) -> None:
        for key in {key for item in (before, after) if item is not None for key in budgets.covering(item)}:
            loop.wake(key, budgets.gather_s(key))

    context.informers.of(PODS).on_change(pod_changed)
    return loop


def stale_disruption_controller(context: Context) -> Controller:
    """Sets DisruptionTarget to false on pods that are not terminating two minutes after the condition was set."""
    pods = context.informers.of(PODS)

    async def reconcile(key: Key) -> float | None:
        item = pods.get(*key)
        obj = item.obj() if item is not None else {}
        reported = _target(obj)
        if reported is None:
            return None
        since = datetime.fromisoformat(reported["lastTransitionTime"])
        left_s = (since + DELETION_TIMEOUT - context.clock.now()).total_seconds()
        if left_s > 0:
            return left_s
        condition = {"type": _TARGET, "status": "False", "lastTransitionTime": context.clock.text()}
        if generation := obj["metadata"].get("generation"):
            condition["observedGeneration"] = generation
        body = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": {"conditions": [condition]}}
        await context.api.patch(PODS, *key, Patch("strategic", body), "status")
        return None

    loop = Loop(context, reconcile)
    loop.follow(PODS, lambda item: (item.key,) if b'"DisruptionTarget"' in item.data else (), only_latest=True)
    return loop


def _target(pod: Obj) -> Obj | None:
    """The DisruptionTarget condition of a pod that is neither terminating nor finished."""
    status = pod.get("status", {})
    if not pod or "deletionTimestamp" in pod["metadata"] or status.get("phase") in TERMINAL_PHASES:
        return None
    for condition in status.get("conditions", ()):
        if condition["type"] == _TARGET and condition["status"] == "True":
            found: Obj = condition
            return found
    return None


def _about(namespace: str, name: str, uid: str) -> Obj:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace, "uid": uid}}
