"""Writes the status of Kubernetes' PodGroups whose pods Shoal's scheduler places.

Guarantees: a group is written only while all of its pods name a scheduler of this process; a group that was scheduled
once stays so, as with kube-scheduler; a server without these groups costs nothing.
"""

from __future__ import annotations

import asyncio
import copy

import msgspec
from msgspec import field

from shoal.api.pod import PodStatus, SchedulingGroup
from shoal.client.conditions import Status, WriteTime, is_true, put
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import GROUP_POD_GROUPS
from shoal.client.item import Item, Key, Seen
from shoal.client.kind import PODS, Kind
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.served import Served
from shoal.controllers.kubernetes_groups.scheduled import CONDITION, ScheduledMember, scheduled

_MARK = b'"schedulingGroup"'
_INDEX = "scheduling-group"
_TOGETHER_S = 0.2
"""The pods of a group are bound together: the delay combines their changes."""


class _GroupedPodSpec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_group: SchedulingGroup | None = None


class _GroupedPod(msgspec.Struct, gc=False):
    spec: _GroupedPodSpec
    status: PodStatus = field(default_factory=PodStatus)


class _Gang(msgspec.Struct, rename="camel", gc=False):
    min_count: int = 0


class _Policy(msgspec.Struct, gc=False):
    gang: _Gang | None = None


class _GroupSpec(msgspec.Struct, rename="camel", gc=False):
    scheduling_policy: _Policy = field(default_factory=_Policy)


class _GroupMeta(msgspec.Struct, gc=False):
    generation: int = 0


class _KubernetesPodGroup(msgspec.Struct, gc=False):
    metadata: _GroupMeta
    spec: _GroupSpec = field(default_factory=_GroupSpec)
    status: Status = field(default_factory=dict)


_pod: Seen[_GroupedPod] = Seen(_GroupedPod)


class KubernetesGroups:
    def __init__(self, context: Context, served: Served, schedulers: frozenset[str]) -> None:
        """The caller refreshes `served`; `schedulers`: the names of this scheduler in pods."""
        self.name = context.name
        self._context = context
        self._schedulers = schedulers
        self._kind: Kind | None = None
        self._found = asyncio.Event()
        self._loop = Loop(context, self._look)
        served.when_there(GROUP_POD_GROUPS, self._begin)

    async def run(self) -> None:
        """Runs until cancelled. Without such groups no pod is read."""
        await self._found.wait()
        await self._loop.run()

    def _begin(self, kind: Kind) -> None:
        self._kind = kind
        self._loop.follow(kind)
        self._loop.need(PODS)
        self._context.informers.of(PODS).on_change(self._pod_changed)
        self._found.set()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            for name in _group_of(item):
                self._loop.wake((item.namespace, name.partition("/")[2]), _TOGETHER_S)

    async def _look(self, key: Key) -> None:
        kind = self._kind
        item = self._context.informers.of(kind).get(*key) if kind is not None else None
        if item is None or kind is None:
            return
        group = item.read(_KubernetesPodGroup)
        if is_true(group.status, CONDITION):
            return
        pods = self._context.informers.of(PODS).index(_INDEX, _group_of)["/".join(key)]
        if any(_pod(one).spec.scheduler_name not in self._schedulers for one in pods):
            return
        gang = group.spec.scheduling_policy.gang
        says = scheduled([_member(one) for one in pods], gang.min_count if gang is not None else 0)
        if says is None:
            return
        clock = self._context.clock
        status = copy.deepcopy(group.status)
        if put(status, CONDITION, says, WriteTime(clock.text(), clock.seconds(), group.metadata.generation)):
            known = {"uid": item.uid, "resourceVersion": str(item.version)}
            patch = Patch("merge", {"metadata": known, "status": {"conditions": status["conditions"]}})
            await self._context.api.patch(kind, *key, patch, "status")


def _member(item: Item) -> ScheduledMember:
    pod = _pod(item)
    waits = next((one for one in pod.status.conditions if one.type == "PodScheduled" and one.status == "False"), None)
    is_bound = bool(pod.spec.node_name)
    return (
        ScheduledMember(item.name, is_bound)
        if waits is None
        else ScheduledMember(item.name, is_bound, waits.reason, waits.message)
    )


def _group_of(item: Item) -> list[str]:
    group = _pod(item).spec.scheduling_group if _MARK in item.data else None
    return [f"{item.namespace}/{group.pod_group_name}"] if group is not None else []
