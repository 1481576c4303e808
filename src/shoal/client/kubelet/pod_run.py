"""Stores the progress of a pod on its node, from which its status is computed.

A run never goes back: after `over` only its deletion follows. All times are seconds since 1970.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.client.kubelet.pod_facts import PodFacts, Role, role_of

PodStep = Literal["bound", "admitted", "running", "over"]
ContainerStep = Literal["blocked", "waiting", "running", "stopping", "crashed", "ended"]
"""`blocked`: other containers come first; `crashed`: it will be restarted; `ended`: it will not."""
Health = Literal["", "starting", "unready", "ready", "failing"]
"""The health of a running container according to its probes; `failing`: it was ready once."""
_ALIVE = ("running", "stopping")


class Ended(msgspec.Struct, frozen=True, gc=False):
    """One finished run of a container."""

    started_s: float
    finished_s: float
    code: int
    reason: str
    message: str = ""
    id: str = ""
    """Of the container at its runtime; empty: it is derived from names."""


class ContainerRun(msgspec.Struct, gc=False):
    name: str
    role: Role
    step: ContainerStep = "blocked"
    since_s: float = 0.0
    """When the current step began."""
    image: str = ""
    """The image at the start, as in the spec at that time."""
    id: str = ""
    """Of the container at its runtime, as of its image; empty: they are derived from names."""
    image_id: str = ""
    is_replaced: bool = False
    """Whether it is stopped because its definition changed; it is then restarted regardless of its policy."""
    restarts: int = 0
    crashes: int = 0
    """Consecutive exits that count for the back-off."""
    started_s: float = 0.0
    ended: Ended | None = None
    """The previous run, or the last one of an ended container."""
    health: Health = ""
    health_since_s: float = 0.0
    error: str = ""
    """The error message with which its program will end."""
    waiting_reason: str = ""
    """Why it cannot be started now: CreateContainerConfigError, ImagePullBackOff, ..."""
    waiting_message: str = ""
    work_s: float = 0.0
    """Work done until `paced_s`, in seconds at speed 1."""
    paced_s: float = 0.0
    pace: float = 1.0

    @property
    def is_alive(self) -> bool:
        return self.step in _ALIVE

    @property
    def is_ready(self) -> bool:
        return self.health == "ready"

    @property
    def is_started(self) -> bool:
        return self.health not in ("", "starting")

    def set_pace(self, pace: float, now_s: float) -> None:
        self.work_s += max(now_s - self.paced_s, 0.0) * self.pace
        self.paced_s, self.pace = now_s, pace


class PodRun(msgspec.Struct, gc=False):
    uid: str
    namespace: str
    name: str
    containers: list[ContainerRun]
    step: PodStep = "bound"
    since_s: float = 0.0
    admitted_s: float = 0.0
    """status.startTime."""
    ip: str = ""
    sandboxes: int = 0
    phase: str = ""
    """The final phase, set when the pod has finished or will finish."""
    reason: str = ""
    message: str = ""
    stop_since_s: float | None = None
    """Since when its containers are being stopped."""
    grace_s: float = 30.0
    is_deleted: bool = False
    """Whether the pod is being deleted; it is removed when all containers have stopped."""
    extra: dict[str, tuple[str, str, str]] | None = None
    """Additional conditions: status, reason, message."""
    is_dismissed: bool = False
    """Whether the final deletion was sent; finalizers may still keep the pod."""
    has_gates: bool = False
    """Whether it has readiness gates, whose conditions other controllers write."""
    generation: int = 0
    """The last seen generation of the object."""
    restart_requests: int = 0
    """The hash of the last seen restart annotations."""
    base: int = 0
    """The resourceVersion from which the run began, until its first write: another fleet may have been faster."""
    changes: int = 0
    written: int = 0
    runtime: str = "containerd"
    """The scheme of the ids of its containers."""

    @property
    def is_over(self) -> bool:
        return self.step == "over"

    def of(self, role: Role) -> list[ContainerRun]:
        return [one for one in self.containers if one.role == role]

    def container(self, name: str) -> ContainerRun | None:
        return next((one for one in self.containers if one.name == name), None)


def new_run(facts: PodFacts, now_s: float) -> PodRun:
    meta = facts.metadata
    containers = [ContainerRun(one.name, role_of(facts, at)) for at, one in enumerate(facts.all_containers())]
    gates = bool(facts.spec.readiness_gates)
    return PodRun(meta.uid, meta.namespace, meta.name, containers, since_s=now_s, has_gates=gates)
