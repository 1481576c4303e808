"""Keeps the running pods and gangs of the cluster, from the same events as the scheduler, so that gangs are recognized
in every notation.

A gang that cannot spare the pods that leave a node stops as a whole: its pods on other nodes are evicted too. Else they
would hold GPUs and wait for members that cannot be placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from shoal.engine.events import Event, GroupGone, GroupSeen, PodBound, PodGone
from shoal.engine.groups import GroupFacts
from shoal.operator.upgrades.lost_work import DrainedPod, NodeWork


class RunningWork:
    def __init__(self) -> None:
        self._pods: dict[str, PodBound] = {}
        self._groups: dict[str, GroupFacts] = {}

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case PodBound():
                    self._pods[event.key] = event
                case PodGone():
                    self._pods.pop(event.key, None)
                case GroupSeen():
                    self._groups[event.group.name] = event.group
                case GroupGone():
                    self._groups.pop(event.name, None)
                case _:
                    pass

    def node_work(self, now_s: float) -> NodeWork:
        """What drains of nodes would stop."""
        pods = tuple(
            DrainedPod(
                name=key,
                node=pod.node,
                gpus_milli=pod.ask.gpu_milli,
                saved_s=now_s - pod.who.lost_s(now_s),
                gang=self._gang_of(pod),
                priority=pod.priority,
            )
            for key, pod in self._pods.items()
            if not pod.daemon_set and not pod.terminating
        )
        members = Counter(pod.gang for pod in pods if pod.gang)
        return NodeWork(pods, {gang: self._spare(gang, count) for gang, count in members.items()})

    def has_gpus(self, key: str) -> bool:
        pod = self._pods.get(key)
        return pod is not None and pod.ask.gpu_milli > 0

    def mates(self, leaving: Collection[str]) -> list[str]:
        """The other pods of gangs that stop when these pods leave."""
        losses = Counter(self._gang_of(self._pods[key]) for key in leaving if key in self._pods)
        members: dict[str, list[str]] = {gang: [] for gang in losses if gang}
        for key, pod in self._pods.items():
            gang = self._gang_of(pod)
            if gang in members and not pod.terminating:
                members[gang].append(key)
        return [
            key
            for gang, keys in members.items()
            if losses[gang] > self._spare(gang, len(keys))
            for key in keys
            if key not in leaving
        ]

    def _gang_of(self, pod: PodBound) -> str:
        """A group without an object, or with a minimum of one pod, holds its pods together by name only."""
        group = self._groups.get(pod.who.group)
        return pod.who.group if group is not None and (group.minimum > 1 or group.parts) else ""

    def _spare(self, gang: str, running: int) -> int:
        """Of a gang with parts, every part needs its pods."""
        group = self._groups[gang]
        return 0 if group.parts or group.roles else max(running - group.minimum, 0)
