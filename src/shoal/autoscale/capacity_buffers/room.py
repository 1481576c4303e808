"""Plans the room for the pods of CapacityBuffers, on what all other pods leave free."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.bookings import with_bookings
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key


def room_for_buffers(given: PlanningInput, plan: NodePlan, pods: Sequence[Pod]) -> tuple[PlanningInput, NodePlan]:
    """What is to be provisioned for these pods beside the plan, and the input with the room that is kept for them on
    present nodes."""
    if not pods:
        return given, NodePlan()
    beside, _ = with_bookings(given, [pod for pod in given.pods if pod_key(pod) in plan.placed])
    found = NodePlanner(replace(beside, pods=tuple(pods), gangs={}, together={}, forbidden={})).plan()
    room, _ = with_bookings(given, [pod for pod in pods if pod_key(pod) in found.placed])
    return room, found
