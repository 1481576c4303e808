"""Tracks disruption budgets and the pods that each of them covers.

Rejected: reading a budget against all pods of its namespace whenever one of them changes. A namespace with a budget and
ten thousand pods would cost as many comparisons for each pod that is created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from shoal.api.disruption import PodDisruptionBudget
from shoal.api.selectors import Selector, selector_of
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import DISRUPTION_BUDGETS
from shoal.engine.events import BudgetGone, BudgetSeen, Event
from shoal.engine.groups import BudgetFacts
from shoal.engine.pod_identity import PodLabels
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.pod_states import PodState
from shoal.store.watched.pods import Pods
from shoal.store.watched.reading import value_of
from shoal.store.watched.tolerant_reading import read_each
from shoal.units.errors import UserError


class _Budget(msgspec.Struct):
    value: PodDisruptionBudget
    selector: Selector
    pods: dict[str, None] = msgspec.field(default_factory=dict)
    reported: BudgetFacts | None = None


class Budgets:
    def __init__(self, budgets: Informer, pods: Pods, troubles: ObjectFaults, stir: Callable[[], None]) -> None:
        self._informer = budgets
        self._pods = pods
        self._troubles = troubles
        self._stir = stir
        self._by_space: dict[str, dict[str, _Budget]] = {}
        self._changed_names: dict[tuple[str, str], None] = {}
        self._dirty: dict[tuple[str, str], None] = {}

    def follow(self) -> None:
        self._informer.on_change(self._changed)

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            self._changed_names[item.key] = None
            self._stir()

    def drain(self, dirty: Iterable[str]) -> list[Event]:
        """`dirty`: pods that were created, deleted or changed."""
        events: list[Event] = []
        for key in read_each("pod", dirty, lambda key: self._sort_in(key, self._pods.get(key))):
            self._pods.touch(key)
        changed, self._changed_names = self._changed_names, {}
        self._changed_names |= read_each("disruption budget", changed, lambda at: self._read(*at, events))
        dirty_budgets, self._dirty = self._dirty, {}
        self._dirty |= read_each("disruption budget", dirty_budgets, lambda at: self._report(*at, events))
        return events

    @property
    def is_quiet(self) -> bool:
        return not (self._changed_names or self._dirty)

    def _report(self, namespace: str, name: str, events: list[Event]) -> None:
        budget = self._by_space.get(namespace, {}).get(name)
        if budget is not None:
            facts = self._facts(budget)
            if facts != budget.reported:
                budget.reported = facts
                events.append(BudgetSeen(facts))

    def _sort_in(self, key: str, state: PodState | None) -> None:
        budgets = self._by_space.get(key.partition("/")[0], {})
        for name, budget in budgets.items():
            covers = state is not None and _covers(budget, state)
            if covers != (key in budget.pods) or (covers and budget.value.status is None):
                self._dirty[key.partition("/")[0], name] = None
            if covers:
                budget.pods[key] = None
            else:
                budget.pods.pop(key, None)

    def _read(self, namespace: str, name: str, events: list[Event]) -> None:
        item = self._informer.get(namespace, name)
        if item is None:
            self._troubles.settle(DISRUPTION_BUDGETS, f"{namespace}/{name}")
            if self._by_space.get(namespace, {}).pop(name, None) is not None:
                events.append(BudgetGone(name, namespace))
            if not self._by_space.get(namespace, True):
                del self._by_space[namespace]
            return
        spaces = self._by_space.setdefault(namespace, {})
        before = spaces.get(name)
        try:
            value = value_of(DISRUPTION_BUDGETS, item, PodDisruptionBudget)
        except UserError as error:
            key = f"{namespace}/{name}"
            self._troubles.put(ObjectFault(DISRUPTION_BUDGETS, key, item.uid, UNREADABLE, message_of(error)))
            return
        self._dirty[namespace, name] = None
        if before is not None and before.value.spec == value.spec:
            before.value = value
            return
        budget = spaces[name] = _Budget(value, selector_of(value.spec.selector))
        budget.reported = before.reported if before is not None else None
        known: dict[PodLabels, bool] = {}
        for key, state in self._pods:
            traits = state.who.traits
            if key.startswith(f"{namespace}/") and not state.is_finished:
                covers = known.get(traits)
                if covers is None:
                    covers = known[traits] = _covers(budget, state)
                if covers:
                    budget.pods[key] = None

    def _facts(self, budget: _Budget) -> BudgetFacts:
        meta, value = budget.value.metadata, budget.value
        if value.status is not None:
            allowed = value.status.disruptions_allowed
        else:
            states = [self._pods.get(key) for key in budget.pods]
            healthy = sum(1 for state in states if state is not None and state.node and not state.is_terminating)
            allowed = value.allowed(healthy, len(budget.pods))
        return BudgetFacts(meta.name, meta.namespace, allowed, frozenset(budget.pods))


def _covers(budget: _Budget, state: PodState) -> bool:
    return not state.is_finished and budget.selector.matches(dict(state.who.traits.labels))
