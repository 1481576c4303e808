"""Determines what a NodeClaim needs next, from its object, its Node and its instance.

A claim is launched, its Node registers, and the Node is initialized once it is ready, has no startup taint and
advertises every device that its instance type has. One that takes longer than it may is given up, so that another
offering is tried. A node with seven of eight GPUs has not started: it would be paid as a whole and used in part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from shoal.api.node import Node
from shoal.api.resources import amounts, is_extended
from shoal.api.wire import to_quantity
from shoal.autoscale.node_claims.claim import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    UNREGISTERED_TAINT,
    NodeClaim,
)
from shoal.autoscale.nodes.advertised_devices import gives_by_claims
from shoal.devices.names import DOMAIN
from shoal.units.errors import UserError

_VISIBLE_S: Final = 60.0
"""Clouds list a new instance with a delay."""
_NOT_READY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class ProvisionLimits(msgspec.Struct, frozen=True):
    """How long each step may take, in seconds."""

    launch_s: float
    register_s: float = 900.0
    initialize_s: float = 900.0


class ClaimStep(StrEnum):
    LAUNCH = "launch"
    WAIT = "wait"
    REGISTER = "register"
    INITIALIZE = "initialize"
    NONE = "none"
    GIVE_UP = "give up"
    LOST = "lost"
    """Its instance or its Node is gone."""
    TERMINATE = "terminate"


class StepDecision(msgspec.Struct, frozen=True):
    step: ClaimStep
    why: str = ""


def step_of(
    claim: NodeClaim,
    node: Node | None,
    *,
    has_instance: bool,
    now_s: float,
    limits: ProvisionLimits,
    is_published: bool = False,
) -> StepDecision:
    """`node`: the Node with the provider id of the claim. `is_published`: whether its GPUs are published as devices of
    resource claims."""
    if claim.is_deleting:
        return StepDecision(ClaimStep.TERMINATE)
    if not claim.has(LAUNCHED):
        if now_s - claim.created_s > limits.launch_s:
            return StepDecision(ClaimStep.GIVE_UP, f"it was not launched within {limits.launch_s:g} s")
        return StepDecision(ClaimStep.LAUNCH)
    if not has_instance:
        if now_s - claim.since_s(LAUNCHED) < _VISIBLE_S:
            return StepDecision(ClaimStep.WAIT, "the cloud does not list its instance yet")
        return StepDecision(ClaimStep.LOST, "its instance is gone")
    if not claim.has(REGISTERED):
        if node is not None:
            return StepDecision(ClaimStep.REGISTER)
        if now_s - claim.since_s(LAUNCHED) > limits.register_s:
            return StepDecision(ClaimStep.GIVE_UP, f"its node did not register within {limits.register_s:g} s")
        return StepDecision(ClaimStep.WAIT, "its node has not registered")
    if node is None or node.metadata.deletion_timestamp is not None:
        return StepDecision(ClaimStep.LOST, "its Node was deleted")
    if claim.has(INITIALIZED):
        return StepDecision(ClaimStep.NONE)
    missing = missing_to_start(node, claim.startup_taints, claim.capacity)
    if not missing and gives_by_claims(claim.labels) and not is_published and not _has_device_plugin(node):
        missing = "its GPUs are not published as devices of resource claims"
    if not missing:
        return StepDecision(ClaimStep.INITIALIZE)
    if now_s - claim.since_s(REGISTERED) > limits.initialize_s:
        return StepDecision(ClaimStep.GIVE_UP, f"its node did not start within {limits.initialize_s:g} s: {missing}")
    return StepDecision(ClaimStep.WAIT, missing)


def missing_to_start(node: Node, startup_taints: Sequence[tuple[str, str]], promised: Mapping[str, str]) -> str:
    """What keeps the node from taking pods; empty if nothing does. `promised`: the capacity of its instance type."""
    if not node.is_ready():
        return "the node is not ready"
    present = {(taint.key, taint.effect) for taint in node.spec.taints}
    left = [key for key, effect in startup_taints if (key, effect) in present]
    left += [taint.key for taint in node.spec.taints if taint.key in _NOT_READY or taint.key == UNREGISTERED_TAINT]
    if left:
        return f"it has the taint {left[0]}"
    advertised = amounts(node.allocatable())
    for name, amount in promised.items():
        if not is_extended(name):
            continue
        wanted, there = _whole(amount), advertised.get(name, 0)
        if there < wanted:
            return f"it advertises {there} of {wanted} {name}"
    return ""


def _has_device_plugin(node: Node) -> bool:
    """Whether its GPUs are resources, although its pool seemed to publish them as devices of claims."""
    return any(name.startswith(DOMAIN) and amount for name, amount in amounts(node.allocatable()).items())


def _whole(text: str) -> int:
    try:
        return to_quantity(text).milli_value() // 1000
    except UserError:
        return 0
