"""Sums up the Events that report a fault, an eviction or a preemption, by reason and namespace.

They are kept when their Events are gone or pushed out by others, until the user acknowledges them.
"""

from __future__ import annotations

from collections import OrderedDict

from msgspec import structs

from shoal.views.dashboard.facts import EventFacts, WarningFacts

_REFUSALS = frozenset({"FailedScheduling", "Unschedulable", "NotEnoughResources"})
_WORK_THAT_WAITS = ("workload/", "podgroup/")
"""Why a pod, Workload or PodGroup waits is shown beside it."""
_EVICTIONS = frozenset({"Preempted", "TaintManagerEviction"})
_EVICTED, _SAID_TWICE = "Evicted", "EvictedDueToPreempted"
"""Reasons of type Normal in Kubernetes and Kueue that matter like a warning. Kueue adds its cause to `Evicted`,
and reports a preemption by two Events."""
_MOST_KINDS, _MOST_SEEN = 200, 10_000


class WarningState:
    def __init__(self) -> None:
        self._warnings: dict[str, WarningFacts] = {}
        self._counted: OrderedDict[str, int] = OrderedDict()
        """Event -> how often it had happened at its last version."""

    def put(self, event: EventFacts) -> None:
        if not _matters(event):
            return
        more = event.count - self._counted.pop(event.name, 0)
        self._counted[event.name] = event.count
        while len(self._counted) > _MOST_SEEN:
            self._counted.popitem(last=False)
        if more <= 0:
            return
        key = f"{event.reason} {event.namespace}"
        known = self._warnings.get(key)
        if known is None:
            if len(self._warnings) >= _MOST_KINDS:
                self._warnings.pop(min(self._warnings, key=lambda each: self._warnings[each].at))
            known = WarningFacts(key, event.reason, 0, "", "", "")
        known = structs.replace(known, count=known.count + more)
        if event.at >= known.at:
            known = structs.replace(known, at=event.at, about=event.about, message=event.message)
        self._warnings[key] = known

    def all(self) -> list[WarningFacts]:
        """The newest first."""
        return sorted(self._warnings.values(), key=lambda one: (one.at, one.key), reverse=True)


def _matters(event: EventFacts) -> bool:
    if event.reason == _SAID_TWICE:
        return False
    if event.reason in _EVICTIONS or event.reason.startswith(_EVICTED):
        return True
    is_refusal = event.reason in _REFUSALS or event.about.startswith(_WORK_THAT_WAITS)
    return event.is_warning and not is_refusal
