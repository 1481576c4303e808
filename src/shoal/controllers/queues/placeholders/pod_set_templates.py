"""Reads from the pod set templates of a Workload what its pods will request, and how they relate to other pods.

The pods are read like pods of their scheduler: with their claims, with what their scheduler profile adds, and on nodes
from which their volumes can be reached. A template that cannot be read yields no placeholders; the other pod sets of
the Workload are not affected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import structs

from shoal.api.kueue import Workload
from shoal.api.meta import ObjectMeta
from shoal.api.node_affinity import NodeAffinity
from shoal.api.pod import Pod, PodTemplate
from shoal.api.stated_capacity import on_stated_capacity
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.controllers.scheduling_loop.protocols import PodViews
from shoal.engine.asks import Ask
from shoal.engine.from_api import Priorities, ask_of_pod, who_of_pod
from shoal.engine.node_rules import both_rules
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.queues.facts import WorkloadFacts
from shoal.store.watched.cluster import WatchedCluster
from shoal.store.watched.queues import WatchedQueues
from shoal.units.errors import UserError, Where
from shoal.units.numbers import whole_of

_log = logging.getLogger("shoal.queues")
_UNRELATED = {"group": "", "part": "", "role": "", "preempts": False, "is_preemptible": False, "returns": False}
AskOf = Callable[[Pod, str], Ask]
"""The requests of a pod made from the template of a pod set; its name is the Workload's."""


class PodSetTemplate(msgspec.Struct, frozen=True):
    ask: Ask
    priority: int
    who: PodIdentity


class PodSetTemplates:
    """Templates of the Workloads for which places are looked for in this round; each is read once."""

    def __init__(self, workload_of: Callable[[str], Workload | None], ask_of: AskOf) -> None:
        self._workload_of = workload_of
        self._ask_of = ask_of
        self._read: dict[str, dict[str, PodSetTemplate]] = {}

    def of(self, facts: WorkloadFacts, priorities: Priorities) -> dict[str, PodSetTemplate]:
        """By pod set."""
        found = self._read.get(facts.key)
        if found is None:
            workload = self._workload_of(facts.key)
            sets = workload.spec.pod_sets if workload is not None else ()
            found = self._read[facts.key] = {}
            for each in sets:
                try:
                    found[each.name] = self._template(facts, each.name, each.template, priorities)
                except UserError as error:
                    _log.info("no places are kept for pod set %s of workload %s: %s", each.name, facts.key, error)
        return found

    def forget(self) -> None:
        self._read.clear()

    def _template(
        self, facts: WorkloadFacts, pod_set: str, template: PodTemplate, priorities: Priorities
    ) -> PodSetTemplate:
        namespace, _, name = facts.key.partition("/")
        meta = ObjectMeta(
            name=name,
            namespace=namespace,
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
        )
        pod = Pod(metadata=meta, spec=template.spec)
        priority = priorities.of_pod(template.spec, Where(path="spec"))
        return PodSetTemplate(self._ask_of(pod, pod_set), priority.value, unrelated(who_of_pod(pod, priority, order=0)))


def unrelated(who: PodIdentity) -> PodIdentity:
    """The same pod as a placeholder: it is in no gang, preempts no pod and is preempted by none."""
    return structs.replace(who, **_UNRELATED)


class TemplateAsks:
    """Computes the requests of a pod set's pods; `pod_cache` knows claims, profiles and volumes if it is a
    `WatchedCluster`, otherwise only the template counts."""

    def __init__(self, pod_cache: PodViews, watched: WatchedQueues) -> None:
        self._world = pod_cache if isinstance(pod_cache, WatchedCluster) else None
        self._watched = watched

    def of(self, pod: Pod, pod_set: str) -> Ask:
        """`pod` is made from the template of the pod set and has the Workload's name."""
        watched = self._world
        if watched is None:
            return ask_of_pod(pod)
        refs, asking = watched.devices.refs(pod) if pod.spec.resource_claims else (None, pod)
        profile = watched.profile(pod.spec.scheduler_name)
        asking = on_stated_capacity(asking, watched.priorities.capacity)
        ask = profile.named(ask_of_pod(asking, profile.added, refs))
        rule = self._rules(pod.metadata.key).get(pod_set)
        return ask if rule is None else structs.replace(ask, nodes=both_rules(ask.nodes, rule))

    def stirred(self) -> set[str]:
        """Workloads whose volumes changed such that their pods may fit on other nodes."""
        return self._world.volumes.templates.stirred() if self._world is not None else set()

    def forget(self, workload: str) -> None:
        if self._world is not None:
            self._world.volumes.templates.forget(workload)
            self._world.devices.forget(workload)

    def are_reached(self, workload: str, places: Iterable[tuple[str, str]]) -> bool:
        """Whether the volumes can be reached from all of these places, which are pairs of pod set and node."""
        rules, watched = self._rules(workload), self._world
        return all(
            pod_set not in rules
            or watched is None
            or (required := rules[pod_set].required) is None
            or required.matches(node, watched.volumes.labels_of(node))
            for pod_set, node in places
        )

    def _rules(self, workload: str) -> Mapping[str, NodeAffinity]:
        namespace, _, name = workload.partition("/")
        item = self._watched.item(WORKLOADS, namespace, name)
        return {} if self._world is None or item is None else self._world.volumes.templates.rules(workload, item)


class PodRanks:
    """Finds the placeholder of the pods of one Workload that have an index: the one with the pod's rank.

    Placeholders are numbered in the order of the admission's topology domains, so that pods with neighboring ranks,
    which communicate with each other, are near each other.
    """

    def __init__(self, workload: Workload | None) -> None:
        sets = workload.spec.pod_sets if workload is not None else ()
        self._requests = {
            one.name: (one.topology_request, one.count) for one in sets if one.topology_request is not None
        }

    def of(self, pod_set: str, labels: Mapping[str, str]) -> int | None:
        """None if the labels do not give the rank, or not as numbers."""
        request, count = self._requests.get(pod_set, (None, 0))
        index = whole_of(labels.get(request.pod_index_label or "", "")) if request is not None else None
        if request is None or index is None:
            return None
        sub_group = whole_of(labels.get(request.sub_group_index_label or "", "0"))
        sub_groups = request.sub_group_count or 1
        return sub_group * (count // sub_groups) + index if sub_group is not None else None
