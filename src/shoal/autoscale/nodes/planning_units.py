"""Reads the pods of a planning as units that are planned as a whole: single pods, and gangs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.catalog import mig_slices
from shoal.autoscale.nodes.interruption_risk import loss_of, of_gang
from shoal.autoscale.nodes.plan import PodRefusal
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.autoscale.nodes.pod_variants import PlannedPod, PodShapes
from shoal.autoscale.nodes.volumes import Alternative

_BOUND_TO_NODES: Final = frozenset({"DaemonSet", "Node"})
"""Owners whose pods come with a node."""


def read_units(
    given: PlanningInput, pods: Sequence[Pod], shapes: PodShapes, *, has_interruptions: bool
) -> tuple[list[list[PlannedPod]], dict[str, PodRefusal]]:
    """The units in the order in which they are planned, and the pods for which nothing is planned.
    `has_interruptions`: whether nodes may be taken back, so that the work of pods counts.
    """
    units: list[list[PlannedPod]] = []
    gangs: dict[str, list[PlannedPod]] = {}
    refusals: dict[str, PodRefusal] = {}

    def planned(pod: Pod, alternatives: tuple[Alternative, ...]) -> PlannedPod:
        found = shapes.of(pod, alternatives, given.devices.refs_of(pod))
        return replace(found, loss=loss_of(pod, found.shape.asked)) if has_interruptions else found

    for pod in pods:
        key = pod_key(pod)
        alternatives = given.volumes.alternatives(pod)
        owner = pod.metadata.controller()
        if owner is not None and owner.kind in _BOUND_TO_NODES:
            refusals[key] = PodRefusal(key, reason=f"no node is provisioned for a pod of a {owner.kind}")
        elif key in given.forbidden:
            refusals[key] = PodRefusal(key, reason=given.forbidden[key])
        elif isinstance(alternatives, str):
            refusals[key] = PodRefusal(key, reason=alternatives)
        elif (gang := given.gangs.get(key)) is not None:
            if gang not in gangs:
                units.append(gangs.setdefault(gang, []))
            gangs[gang].append(planned(pod, alternatives))
        else:
            units.append([planned(pod, alternatives)])
    is_least_cost = given.settings.packing == "LeastCost"

    def order(pod: PlannedPod) -> tuple[int, tuple[int, int, float, str]]:
        # Karpenter's order does not know MIG; a plan of least cost uses the order in which trials place instances.
        return -mig_slices(pod.shape.first.ask) if is_least_cost else 0, pod.order

    for gang, members in gangs.items():
        if has_interruptions:
            losses = of_gang([each.loss for each in members], gang)
            members[:] = [replace(each, loss=loss) for each, loss in zip(members, losses, strict=True)]
        members.sort(key=order)
    return sorted(units, key=lambda unit: order(unit[0])), refusals
