"""Pods that are kept from the brain's facts, by the group that they wait for; empty where nobody knows one yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.engine.events import PodArrived


class KeptPods:
    def __init__(self) -> None:
        self._of: dict[str, dict[str, PodArrived]] = {}
        self._group_of: dict[str, str] = {}

    def __len__(self) -> int:
        """Groups."""
        return len(self._of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._of)

    def __contains__(self, group: str) -> bool:
        return group in self._of

    def of(self, group: str) -> Mapping[str, PodArrived]:
        return self._of.get(group, {})

    def group_of(self, pod: str) -> str:
        return self._group_of[pod]

    def event(self, pod: str) -> PodArrived | None:
        return self._of.get(self._group_of.get(pod, ""), {}).get(pod)

    def keep(self, group: str, event: PodArrived) -> None:
        self._of.setdefault(group, {})[event.key] = event
        self._group_of[event.key] = group

    def clear(self) -> None:
        self._of.clear()
        self._group_of.clear()

    def drop(self, pod: str) -> PodArrived | None:
        group = self._group_of.pop(pod, None)
        if group is None:
            return None
        event = self._of[group].pop(pod)
        if not self._of[group]:
            del self._of[group]
        return event
