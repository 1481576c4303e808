"""Converts the changes of a live cluster to the engine's events; each object comes after the objects that it refers to.

Guarantees: equal objects give the facts that manifests would give; changes that concern no decision cause no cycle;
objects that cannot be read are left out, and reported once.

Rejected: reading all objects as a set of manifests in every cycle. Fifty thousand pods take seconds, and a cycle has
milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    GROUP_POD_GROUPS,
    GROUP_WORKLOADS,
    HYPER_NODES,
    JOB_SETS,
    KAI_POD_GROUPS,
    KAI_TOPOLOGIES,
    KUEUE_TOPOLOGIES,
    LIGHT_POD_GROUPS,
    NODE_TOPOLOGIES,
    VOLCANO_POD_GROUPS,
)
from shoal.client.informer import Informer
from shoal.client.kind import DAEMON_SETS, DISRUPTION_BUDGETS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Kind
from shoal.client.served import Served, Then
from shoal.engine.asks import Ask
from shoal.engine.events import Event, NodeGone, NodeRefused, NodeSeen, OthersSeen, PodArrived, PodBound, PodGone
from shoal.engine.from_api import Priorities, Topologies
from shoal.engine.pod_identity import PodIdentity
from shoal.store.object_faults import ObjectFault, ObjectFaults
from shoal.store.watched.budgets import Budgets
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.gangs import WatchedGangs
from shoal.store.watched.group_objects import MAKERS, GroupObjects
from shoal.store.watched.nodes import WatchedNodes
from shoal.store.watched.pod_asks import PodAsks
from shoal.store.watched.pod_context import PodContext
from shoal.store.watched.pod_states import Owner, PodState
from shoal.store.watched.pod_views import PodView
from shoal.store.watched.pods import Pods
from shoal.store.watched.profiles import USUAL, PodProfile
from shoal.store.watched.volumes import WatchedVolumes
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.store")
_AGAIN_S = 1.0
_NEEDED = (NODES, PODS, NAMESPACES, PRIORITY_CLASSES, DISRUPTION_BUDGETS, DAEMON_SETS, *MAKERS)
_GROUPS = (VOLCANO_POD_GROUPS, KAI_POD_GROUPS, LIGHT_POD_GROUPS, GROUP_POD_GROUPS)
_OTHER_VERSIONS = {KUEUE_TOPOLOGIES: ("v1beta1", "v1alpha1"), GROUP_POD_GROUPS: ("v1beta1", "v1alpha3")}
"""Older versions of kinds that are supported as well."""
_OPTIONAL = (*_GROUPS, GROUP_WORKLOADS, HYPER_NODES, NODE_TOPOLOGIES, KUEUE_TOPOLOGIES, KAI_TOPOLOGIES, JOB_SETS)


class WatchSettings(msgspec.Struct, frozen=True):
    schedulers: frozenset[str] = frozenset({"shoal"})
    """Scheduler names whose pods Shoal places."""
    profiles: Mapping[str, PodProfile] = {}
    """By scheduler name, for those with a profile of their own."""
    spreading: frozenset[str] = frozenset()
    """Schedulers whose pods are spread over nodes if they are replicas, request no device and have no spread rules."""
    kueue_admits: Callable[[], bool] = lambda: False
    """Whether Kueue itself runs in the cluster now, and so admits its pod groups."""


class WatchedCluster:
    """`wake` is called when there are changes to drain."""

    def __init__(
        self,
        context: Context,
        served: Served,
        settings: WatchSettings,
        wake: Callable[[], None],
        devices: WatchedDevices | None = None,
        volumes: WatchedVolumes | None = None,
    ) -> None:
        self._informers = context.informers
        self._served = served
        self.settings = settings
        self.devices = devices = devices or WatchedDevices(context, served, wake)
        self.volumes = volumes = volumes or WatchedVolumes(context, wake)
        self._troubles = ObjectFaults()
        self._unsaid: list[Event] = []
        self._others_place_gpus = False
        """The value that was reported last."""
        self._unheard: dict[str, None] = {}
        """Changed pods that are not reported yet."""
        self._clock, self._wake = context.clock, wake
        of = context.informers.of
        self._asks = PodAsks(settings.profiles, devices, volumes, settings.spreading)
        self._surroundings = PodContext(context.informers, self._troubles, wake)
        self._nodes = WatchedNodes(of(NODES), self._troubles, wake)
        self._pods = Pods(of(PODS), self._asks, settings.schedulers, self._troubles, wake, devices)
        self._budgets = Budgets(of(DISRUPTION_BUDGETS), self._pods, self._troubles, wake)
        self._groups = GroupObjects(context.informers, self._troubles, wake)
        self.gangs = WatchedGangs(self._pods, self._groups, self._troubles)
        for part in (self._surroundings, self._nodes, self._pods, self._budgets, self._groups):
            part.follow()
        self._follow_what_may_be_there()

    def _follow_what_may_be_there(self) -> None:
        then: dict[Kind, Callable[[Informer], None]] = {
            **dict.fromkeys(_GROUPS, self._groups.follow_groups),
            GROUP_WORKLOADS: self._groups.follow_workloads,
            JOB_SETS: self._groups.follow_makers,
            HYPER_NODES: self._nodes.follow_network,
            NODE_TOPOLOGIES: self._nodes.follow_zones,
            KUEUE_TOPOLOGIES: self._surroundings.follow_kueue,
            KAI_TOPOLOGIES: self._surroundings.follow_kai,
        }
        for kind, follow in then.items():
            others = (kind._replace(version=version) for version in _OTHER_VERSIONS.get(kind, ()))
            self._served.when_there(kind, self._following(follow), *others)

    def _following(self, follow: Callable[[Informer], None]) -> Then:
        return lambda kind: follow(self._informers.of(kind))

    async def synced(self) -> None:
        """Whether the caches of all required kinds, and of all served optional ones, are filled."""
        try:
            await self._served.look()
        except ShoalError as error:
            _log.info("the server's kinds cannot be read: %s", error)
        found = [kind for wanted in _OPTIONAL if (kind := self._served.find(wanted)) is not None]
        await self._informers.synced([*_NEEDED, *found])
        await self.devices.synced()
        await self.volumes.synced()

    # -- changes ----------------------------------------------------------------------------------------------

    def drain(self) -> list[Event]:
        """The changes since the last call. If a reader raises an error, the changes of the other readers are returned
        by the next call; unreadable objects are read again after a moment.
        """
        events = self._unsaid
        events += self._pods.take_gone()
        priorities = self._surroundings.new_priorities()
        if priorities is not None:
            if self._asks.put_priorities(priorities):
                self._pods.read_again([key for key, _ in self._pods])
            self.gangs.all_dirty()
        self.gangs.heed_kueue(admits=self.settings.kueue_admits())
        self._read_stirred()
        if renamed := self.devices.take_renamed():
            self._pods.name_again(renamed)
        is_new_tree = self._nodes.renew_tree()
        topologies = self._surroundings.renew_topologies(self._nodes.tree, is_new_tree=is_new_tree)
        if topologies is not None:
            self.gangs.all_dirty()
        events += self._surroundings.namespaces()
        events += topologies or ()
        if self._others_place_gpus != self.others_place_gpus:
            self._others_place_gpus = self.others_place_gpus
            events.append(OthersSeen(self._others_place_gpus))
        events += self._nodes.drain()
        events += self._surroundings.daemon_sets()
        events += self.devices.drain()
        self._unheard |= dict.fromkeys(self._pods.take_dirty())
        groups, others = self.gangs.drain(list(self._unheard), self._asks.priorities, self._surroundings.topologies)
        events += groups
        self._unheard |= dict.fromkeys(others)
        events += self._budgets.drain(list(self._unheard))
        events += self._pod_news(list(self._unheard))
        self._unsaid, self._unheard = [], {}
        if not all(part.is_quiet for part in (self._pods, self._nodes, self._surroundings, self.gangs, self._budgets)):
            self._clock.call_later(_AGAIN_S, self._wake)
        return events

    def _read_stirred(self) -> None:
        """Pods whose devices or volumes have changed are read again; with a template, all pods that wait."""
        stirred = dict.fromkeys([*self.devices.stirred(), *self.volumes.stirred()])
        samples = [name for name in stirred if self._asks.forget_sample(name)]
        if samples:
            stirred |= {key: None for key, state in self._pods if not state.node}
        self._pods.read_again(stirred)

    def _pod_news(self, keys: list[str]) -> list[Event]:
        gone: list[Event] = []
        refused: list[NodeRefused] = []
        bound: list[PodBound] = []
        waiting: list[tuple[float, int, PodArrived]] = []
        now_s = self._clock.seconds()
        for key in keys:
            state = self._pods.get(key)
            if state is None:
                continue
            if state.reported is None and not state.node and self.gangs.is_unread(key):
                # The other pods of its gang are not known yet.
                self._pods.touch(key)
                continue
            refusal = self._pods.refusal(key, now_s)
            try:
                event = self._pods.news(key, self.gangs.who(key, state))
            except Exception:  # noqa: BLE001 - an error for one pod must not hide the others
                _log.exception("pod %s cannot be read", key)
                self._pods.touch(key)
                continue
            if isinstance(event, PodArrived):
                waiting.append((state.created_s, state.born, event))
            elif isinstance(event, PodBound):
                bound.append(event)
            elif event is not None:
                gone.append(event)
                if refusal is not None:
                    refused.append(refusal)
        # Pods that name their devices come before those that get the remaining devices.
        bound.sort(key=lambda event: not event.positions)
        waiting.sort(key=lambda each: each[:2])
        # A newly seen pod on a node may be the reason why its kubelet rejected another one, which is then tried again.
        return [*gone, *refused, *bound, *(event for _, _, event in waiting)]

    # -- queries -----------------------------------------------------------------------------------------------------

    def view(self, key: str) -> PodView | None:
        """The last seen view of the pod namespace/name."""
        return self._pods.view(key)

    @property
    def others_place_gpus(self) -> bool:
        """Whether there are pods of other schedulers that ask for GPUs, waiting or on a node."""
        return self._pods.others_place_gpus

    def unheard(self, node: str) -> list[tuple[str, Ask]]:
        """Pods that were seen on the node but are not reported yet, with their asks."""
        return self._pods.unheard(node)

    def profile(self, scheduler: str) -> PodProfile:
        """The profile for pods of that scheduler."""
        return self.settings.profiles.get(scheduler, USUAL)

    def owner(self, key: str) -> Owner | None:
        """The controller of the pod, which recreates it, if it has one."""
        state = self._pods.get(key)
        return state.owner if state is not None else None

    def owners(self, key: str) -> Sequence[Owner]:
        """The controller of the pod and the controller of that one, as far as they are known."""
        owner = self.owner(key)
        return () if owner is None else (owner, self._groups.top(owner))

    def beside_volumes(self, key: str) -> tuple[Ask, PodIdentity, str] | None:
        """The ask of a pod without its volumes, its identity, and the message for nodes that only its volumes
        exclude.
        """
        state, item = self._pods.get(key), self._pods.item(key)
        found = self._asks.beside_volumes(item) if state is not None and item is not None and not state.fault else None
        return (found[0], state.who, found[1]) if found is not None and state is not None else None

    @property
    def priorities(self) -> Priorities:
        return self._asks.priorities

    @property
    def topologies(self) -> Topologies:
        return self._surroundings.topologies

    def report_again(self, event: Event) -> None:
        """The event could not be applied: the next drain reports the current state again."""
        if isinstance(event, PodArrived | PodBound | PodGone):
            self._pods.report_again(event.key)
        elif isinstance(event, NodeSeen):
            self._nodes.report_again(event.node.name)
        elif isinstance(event, NodeGone):
            self._nodes.report_again(event.name)

    def reported(self) -> list[PodArrived | PodBound]:
        """The last reported event of each pod."""
        return [state.reported for _, state in self._pods if state.reported is not None]

    def states(self) -> list[tuple[str, PodState]]:
        """All pods."""
        return list(self._pods)

    def take_troubles(self) -> list[ObjectFault]:
        """Unreadable objects, each once."""
        return [*self._troubles.take(), *self.devices.take_troubles()]
