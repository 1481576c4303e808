"""What the pods of a Workload will ask for, read of its templates as pods of their scheduler are read: with their
claims, with what their profile adds, and on nodes from which their volumes can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import structs

from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod
from shoal.controllers.brain.parts import Sights
from shoal.engine.asks import Ask
from shoal.engine.from_api import ask_of_pod
from shoal.engine.from_api.node_rules import both_rules
from shoal.store.live.ecosystem_kinds import WORKLOADS
from shoal.store.watched.queues import WatchedQueues
from shoal.store.watched.world import WatchedWorld


class TemplateAsks:
    def __init__(self, world: Sights, watched: WatchedQueues) -> None:
        """Nothing but the templates counts where the world knows no more than pods."""
        self._world = world if isinstance(world, WatchedWorld) else None
        self._watched = watched

    def of(self, pod: Pod, pod_set: str) -> Ask:
        """`pod` is made from the template of the pod set, and called as the Workload is."""
        world = self._world
        if world is None:
            return ask_of_pod(pod)
        refs, asking = world.devices.refs(pod) if pod.spec.resource_claims else (None, pod)
        profile = world.profile(pod.spec.scheduler_name)
        ask = profile.named(ask_of_pod(asking, profile.added, refs))
        rule = self._rules(pod.metadata.key).get(pod_set)
        return ask if rule is None else structs.replace(ask, nodes=both_rules(ask.nodes, rule))

    def stirred(self) -> set[str]:
        """Workloads whose pods may be placed elsewhere by now, as far as their volumes go."""
        return self._world.volumes.templates.stirred() if self._world is not None else set()

    def forget(self, workload: str) -> None:
        if self._world is not None:
            self._world.volumes.templates.forget(workload)
            self._world.devices.forget(workload)

    def are_reached(self, workload: str, places: Iterable[tuple[str, str]]) -> bool:
        """Whether volumes can be reached from all of these: pod sets and nodes."""
        rules, world = self._rules(workload), self._world
        return all(
            pod_set not in rules
            or world is None
            or (required := rules[pod_set].required) is None
            or required.matches(node, world.volumes.labels_of(node))
            for pod_set, node in places
        )

    def _rules(self, workload: str) -> Mapping[str, NodeAffinity]:
        namespace, _, name = workload.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        return {} if self._world is None or item is None else self._world.volumes.templates.rules(workload, item)
