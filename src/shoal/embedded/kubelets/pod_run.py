"""Stores the progress of a pod on its node, from which its status is computed.

A run never goes back: once `over`, nothing but its deletion follows. All times are seconds since 1970.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.embedded.kubelets.pod_facts import PodFacts, Role, role_of

PodStep = Literal["bound", "admitted", "running", "over"]
ContainerStep = Literal["blocked", "waiting", "running", "stopping", "crashed", "ended"]
"""`blocked`: others come first; `crashed`: it will be started again; `ended`: it will not."""
Health = Literal["", "starting", "unready", "ready", "failing"]
"""What probes make of a running container; `failing` was ready once."""
_ALIVE = ("running", "stopping")


class Ended(msgspec.Struct, frozen=True, gc=False):
    """One run of a container that is over."""

    started_s: float
    finished_s: float
    code: int
    reason: str
    message: str = ""


class ContainerRun(msgspec.Struct, gc=False):
    name: str
    role: Role
    step: ContainerStep = "blocked"
    since_s: float = 0.0
    """When that step began."""
    image: str = ""
    """The one it was started with, as the spec named it then."""
    is_replaced: bool = False
    """It is stopped because its definition changed, and is started again whatever its policy."""
    restarts: int = 0
    crashes: int = 0
    """Exits in a row that count for the back-off."""
    started_s: float = 0.0
    ended: Ended | None = None
    """The run before this one or, of an ended container, the last."""
    health: Health = ""
    health_since_s: float = 0.0
    error: str = ""
    """What its program will say as it dies."""
    work_s: float = 0.0
    """Work done up to `paced_s`, in seconds at pace 1."""
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
    """Set once it is over, or decided to be."""
    reason: str = ""
    message: str = ""
    stop_since_s: float | None = None
    """Since when its containers are asked to stop."""
    grace_s: float = 30.0
    is_deleted: bool = False
    """Deleted at the server: goes away when all containers have stopped."""
    extra: dict[str, tuple[str, str, str]] | None = None
    """More conditions: status, reason, message."""
    is_dismissed: bool = False
    """The server was told to let it go; finalizers may keep it."""
    has_gates: bool = False
    """Others decide with their conditions whether it is ready."""
    generation: int = 0
    """Of the object, when it was looked at last."""
    restart_requests: int = 0
    """What the annotations were when it was looked at last, as one number."""
    base: int = 0
    """The version of the object it began from, until something is written: another fleet may have been quicker."""
    changes: int = 0
    written: int = 0

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
