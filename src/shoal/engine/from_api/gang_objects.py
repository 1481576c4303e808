"""Converts the group objects of every ecosystem to the engine's one kind of gang.

Volcano cuts pods into parts by the values of labels, so its parts are known only together with its pods; KAI writes the
parts down and pods name theirs. Minimum, roles, parts and wishes are read as each scheduler means them; what only a
controller reads (timeouts, back-off) is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import STALE_ANNOTATION, KaiPodGroup, KaiPodGroupSpec
from shoal.api.groups.kubernetes import PodGroup
from shoal.api.groups.volcano import SubGroupPolicy, VolcanoPodGroup
from shoal.api.pod import Pod
from shoal.engine.from_api.pod_identity import PREEMPTABLE_KEY, ROLE_KEY
from shoal.engine.from_api.priorities import Priorities
from shoal.engine.from_api.topologies import Topologies
from shoal.engine.groups import GangSubgroup, GroupFacts, TopologyRequirement
from shoal.engine.queues.disciplines.kai.objects import FIRST_NON_PREEMPTIBLE_PRIORITY
from shoal.units.errors import UserError, Where, excerpt


class GangReader:
    """Reads groups against the classes and topologies that are declared."""

    def __init__(self, priorities: Priorities, topologies: Topologies) -> None:
        self._priorities = priorities
        self._topologies = topologies

    def volcano(self, group: VolcanoPodGroup, pods: Iterable[Pod], where: Where) -> GroupFacts:
        """`where` is the document's place, as for all of these."""
        spec = group.spec
        policies = spec.sub_group_policy
        here = where.with_path("spec")
        pieces: dict[str, set[str]] = {}
        for pod in pods:
            policy = _policy_of(policies, pod)
            if policy is not None:
                pieces.setdefault(policy.name, set()).add(volcano_part(group, pod))
        return GroupFacts(
            name=group.metadata.key,
            minimum=spec.min_member,
            parts=tuple(self._volcano_parts(policies, pieces, here)),
            roles=tuple(sorted(spec.role_minima().items())),
            requirement=self._topologies.volcano_requirement(spec.network_topology, here.below("networkTopology")),
            priority=self._priority(spec.priority_class_name, here) if self.knows_class(group) else None,
            is_preemptible=group.metadata.annotations.get(PREEMPTABLE_KEY, "").lower() != "false",
            budget_queue=spec.queue,
        )

    def knows_class(self, group: VolcanoPodGroup) -> bool:
        """Volcano runs a group whose priority class is missing, as one that names none."""
        return self._priorities.has(group.spec.priority_class_name)

    def _volcano_parts(
        self, policies: Sequence[SubGroupPolicy], pieces: dict[str, set[str]], where: Where
    ) -> Iterator[GangSubgroup]:
        for index, policy in enumerate(policies):
            there = where.below(f"subGroupPolicy[{index}].networkTopology")
            requirement = self._topologies.volcano_requirement(policy.network_topology, there)
            # A policy that finds no pod asks for nothing.
            if policy.name not in pieces:
                continue
            yield GangSubgroup(policy.name, minimum=policy.min_sub_groups or 0)
            for piece in sorted(pieces[policy.name]):
                yield GangSubgroup(piece, policy.name, policy.sub_group_size or 0, requirement)

    def kai(self, group: KaiPodGroup, where: Where) -> GroupFacts:
        spec = group.spec
        here = where.with_path("spec")
        priority = self._priority(spec.priority_class_name, here)
        is_preemptible = spec.is_preemptible()
        if is_preemptible is None:
            is_preemptible = priority is None or priority < FIRST_NON_PREEMPTIBLE_PRIORITY
        return GroupFacts(
            name=group.metadata.key,
            minimum=0 if spec.sub_groups else max(spec.min_member or 0, 1),
            parts=tuple(self._kai_parts(spec, here)),
            parts_minimum=spec.min_sub_group,
            requirement=self._topologies.kai_requirement(spec.topology_constraint, here.below("topologyConstraint")),
            priority=priority,
            is_preemptible=is_preemptible,
            queue=spec.queue,
            budget_queue=spec.queue,
            labels=tuple(sorted(group.metadata.labels.items())),
            created_s=created.timestamp() if (created := group.metadata.creation_timestamp) is not None else 0.0,
            stale_since_s=_moment_s(group.metadata.annotations.get(STALE_ANNOTATION, "")),
        )

    def _kai_parts(self, spec: KaiPodGroupSpec, where: Where) -> Iterator[GangSubgroup]:
        for index, part in enumerate(spec.sub_groups):
            here = where.below(f"subGroups[{index}].topologyConstraint")
            inner = len(spec.children(part.name))
            if inner:
                minimum = inner if part.min_sub_group is None else part.min_sub_group
            else:
                minimum = 1 if part.min_member is None else part.min_member
            yield GangSubgroup(
                part.name, part.parent, minimum, self._topologies.kai_requirement(part.topology_constraint, here)
            )

    def kubernetes(self, group: PodGroup, where: Where) -> GroupFacts:
        spec = group.spec
        here = where.with_path("spec")
        requirement = TopologyRequirement()
        if spec.scheduling_constraints is not None and spec.scheduling_constraints.topology:
            levels = [constraint.key for constraint in spec.scheduling_constraints.topology]
            requirement = self._topologies.label_requirement(levels[-1])
        priority = spec.priority
        if priority is None:
            priority = self._priority(spec.priority_class_name, here)
        return GroupFacts(
            name=group.metadata.key,
            minimum=spec.scheduling_policy.min_count(),
            requirement=requirement,
            priority=priority,
            preempts=spec.preemption_policy != "Never",
            is_evicted_whole=spec.is_evicted_whole(),
            has_fixed_minimum=True,
        )

    def coscheduling(self, group: CoschedulingPodGroup) -> GroupFacts:
        return GroupFacts(name=group.metadata.key, minimum=group.spec.min_member)

    def _priority(self, name: str, where: Where) -> int | None:
        return self._priorities.named(name, where.below("priorityClassName")).value if name else None


def volcano_part(group: VolcanoPodGroup, pod: Pod) -> str:
    """The part that the pod counts for: the first policy that finds it, and the values that tell its pieces apart."""
    policy = _policy_of(group.spec.sub_group_policy, pod)
    if policy is None:
        return ""
    labels = _labels(pod)
    return "/".join([policy.name, *(labels[key] for key in policy.match_label_keys)])


def check_kai_part(group: KaiPodGroup, part: str, where: Where) -> None:
    """`where` is the place of the pod's label."""
    parts = group.spec.sub_groups
    if not part or any(each.name == part for each in parts):
        return
    named = ", ".join(each.name for each in parts) or "none"
    raise UserError(
        f"{excerpt(part)} is not a subgroup of PodGroup {group.metadata.key}",
        where=where,
        fix=f"its subgroups: {named}",
    )


def _policy_of(policies: Sequence[SubGroupPolicy], pod: Pod) -> SubGroupPolicy | None:
    labels = _labels(pod)
    for policy in policies:
        found = policy.label_selector is None or policy.label_selector.matches(labels)
        if found and all(key in labels for key in policy.match_label_keys):
            return policy
    return None


def _labels(pod: Pod) -> dict[str, str]:
    """The role of a Volcano pod is an annotation on it, and policies select by it all the same."""
    role = pod.metadata.annotations.get(ROLE_KEY)
    return {ROLE_KEY: role, **pod.metadata.labels} if role else pod.metadata.labels


def _moment_s(text: str) -> float | None:
    """A time that a scheduler wrote; None if there is none, or none with a time zone."""
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.timestamp() if moment is not None and moment.tzinfo is not None else None
