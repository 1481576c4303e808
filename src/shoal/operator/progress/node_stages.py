"""Finds the stage of each component on a node, the first layer that fails, and when each stage was reached.

A later layer waits for the earlier ones, so the first one that fails or is not ready is the one to look at. The times
are those of the first success: a restart of a pod does not change them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from shoal.operator.components.component import DISCOVERY, DRIVER, TOOLKIT, VALIDATOR, Component
from shoal.operator.components.facts import PREINSTALLED

State = Literal["waiting", "starting", "ready", "failed", "preinstalled", "paused", "off"]
ADDED, DETECTED, REPORTED = "added", "detected", "reported"
"""Moments of a node beside those of the components: its creation, its labels, its resources."""
_BAD_REASONS = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
_ORDER = (DRIVER, TOOLKIT)
"""The layers on which all others depend come first, the validator last."""
_SHORT = {"gpu-feature-discovery": "feature-discovery", "operator-validator": "validator"}


class OperandPod(msgspec.Struct, frozen=True):
    """A pod of a component on a node."""

    app: str
    name: str = ""
    phase: str = ""
    is_ready: bool = False
    ready_at: str = ""
    """Since when, as the API writes times."""
    started_at: str = ""
    waiting: tuple[tuple[str, str, str], ...] = ()
    """Container, reason and message of containers that do not run."""
    message: str = ""
    """Why the whole pod failed, such as an eviction."""

    @property
    def fault(self) -> str:
        for container, reason, message in self.waiting:
            if reason in _BAD_REASONS:
                detail = f": {message}" if message else ""
                return f"container {container}: {reason}{detail}"
        return f"the pod failed: {self.message or 'no message'}" if self.phase == "Failed" else ""


class Stage(msgspec.Struct, frozen=True, omit_defaults=True):
    layer: str
    state: State
    message: str = ""


class NodeStages(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of the annotation of a node."""

    layer: str = ""
    """The first one that fails, or else the first one that is not ready; empty if all are ready."""
    state: State = "ready"
    message: str = ""
    stages: dict[str, State] = {}
    times: dict[str, str] = {}


class NodeSight(msgspec.Struct, frozen=True):
    """What is known of a node."""

    labels: Mapping[str, str]
    added_at: str = ""
    has_resources: bool = False
    """Whether its allocatable resources have GPUs."""
    pods: tuple[OperandPod, ...] = ()


def layer_of(component: Component) -> str:
    """`driver`, `container-toolkit`, `device-plugin`, ..."""
    return _SHORT.get(component.deploy, component.deploy) or "discovery"


def node_stages(sight: NodeSight, components: Sequence[Component], before: NodeStages, now: str) -> NodeStages:
    """`components`: those that the policy asks for. `before`: the former value."""
    pods = {one.app: one for one in sight.pods}
    stages = [_stage(one, sight.labels, pods.get(one.name)) for one in _in_order(components)]
    first = next((one for one in stages if one.state == "failed"), None)
    first = first or next((one for one in stages if one.state in ("waiting", "starting")), None)
    return NodeStages(
        layer=first.layer if first is not None else "",
        state=first.state if first is not None else "ready",
        message=first.message if first is not None else "",
        stages={one.layer: one.state for one in stages},
        times=_times(sight, components, before, now),
    )


def _in_order(components: Iterable[Component]) -> list[Component]:
    some = [one for one in components if one != DISCOVERY]
    firsts = [one for one in _ORDER if one in some]
    lasts = [one for one in (VALIDATOR,) if one in some]
    return [*firsts, *(one for one in some if one not in (*firsts, *lasts)), *lasts]


def _stage(component: Component, labels: Mapping[str, str], pod: OperandPod | None) -> Stage:
    layer = layer_of(component)
    value = next((labels.get(name, "") for name in component.node_selector), "true")
    if value == PREINSTALLED:
        return Stage(layer, "preinstalled", "the machine has its own")
    if value != "true":
        return Stage(
            layer, "paused" if value.startswith("paused") else "off", f"label with value {value}" if value else ""
        )
    if pod is None:
        return Stage(layer, "waiting", "no pod yet")
    if pod.is_ready:
        return Stage(layer, "ready")
    if pod.fault:
        return Stage(layer, "failed", f"pod {pod.name}: {pod.fault}")
    return Stage(layer, "starting", f"pod {pod.name}: {_awaited(pod)}")


def _awaited(pod: OperandPod) -> str:
    container, reason, _ = next(iter(pod.waiting), ("", "", ""))
    return f"container {container}: {reason}" if container else "not ready yet"


def _times(sight: NodeSight, components: Iterable[Component], before: NodeStages, now: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if sight.added_at:
        found[ADDED] = sight.added_at
    found[DETECTED] = now
    ready = {one.app: one.ready_at or now for one in sight.pods if one.is_ready}
    for component in _in_order(components):
        if component.name in ready:
            found[layer_of(component)] = ready[component.name]
    if sight.has_resources:
        found[REPORTED] = now
    return found | before.times
