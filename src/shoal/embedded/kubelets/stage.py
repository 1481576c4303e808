"""Defines stages: in which state of a pod a stage applies, how long the state lasts, and which action follows.

Three parts of a pod have a state: the pod itself, each container, and the health of each running container. Every stage
that matches a state starts its timer when the state begins; the first timer that fires determines the action, and the
others are dropped. So a stage that users add ("kill every pod with this label after a minute") needs no change of the
others, and one with the name of a shipped stage replaces it. The kubelet implements the actions.

Rejected: templates of whole statuses. Each would contain conditions, reasons and restart counts again, and they would
become inconsistent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from shoal.client.kubelet.pod_facts import PodFacts, Role
from shoal.embedded.kubelets.durations import seconds_of
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod
from shoal.embedded.kubelets.pod_annotations import PREFIX
from shoal.units.errors import UserError

Subject = Literal["pod", "container", "health"]
Number = Literal[
    "image-pull", "back-off", "deadline", "grace", "readiness", "startup", "layers", "component", "lost-layer"
]
"""Times that the kubelet computes: from its settings, the pod's spec, the number of crashes of a container, or the
layers of GPU software on the node: until a component pod has found them, until it works, and until it has lost one.
"""
_STATES: dict[Subject, tuple[str, ...]] = {
    "pod": ("bound", "admitted", "running"),
    "container": ("waiting", "running", "stopping", "crashed"),
    "health": ("starting", "unready", "ready", "failing"),
}
_VERBS: dict[Subject, tuple[str, ...]] = {
    "pod": ("admit", "sandbox", "fail"),
    "container": ("start", "exit", "restart", "refuse"),
    "health": ("started", "ready", "fail"),
}
ANY = "*"
_LARGEST_CODE = 255


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Rejects unknown fields."""


class When(Strict, frozen=True):
    """The conditions of a stage; all given ones must hold."""

    state: str
    roles: tuple[Role, ...] = ()
    owners: tuple[str, ...] = ()
    """Kinds of the pod's controller; `""`: a pod without one."""
    restart_policies: tuple[Literal["Always", "OnFailure", "Never"], ...] = ()
    annotations: dict[str, str | None] = {}
    """`"*"`: any value; null: the annotation is absent; names without a slash are in `shoal.dev/`."""
    labels: dict[str, str | None] = {}
    components: tuple[str, ...] = ()
    """Names of GPU components; `"*"`: any; `""`: the pod is no component. Only nodes whose GPU software comes with pods
    have components.
    """
    faults: tuple[str, ...] = ()
    """Kinds of the fault that the node has for the component; `""`: none."""
    has_error: bool | None = None
    """Whether its program had an error at the start, such as too little GPU memory."""


class After(Strict, frozen=True):
    """The delay: the annotation if the pod has it, else the number if there is one, else `wait`; without any of them,
    the stage never fires.
    """

    annotation: str = ""
    number: Number | None = None
    wait: str | None = None
    jitter: str = "0s"
    """The maximum random addition, drawn for each pod and run."""
    is_work: bool = False
    """Whether the delay is work, which depends on the speed of the pod on its GPUs."""
    wait_s: float | None = None
    jitter_s: float = 0.0

    def __post_init__(self) -> None:
        try:
            wait_s = None if self.wait is None else seconds_of(self.wait)
            jitter_s = seconds_of(self.jitter)
        except UserError as error:
            raise ValueError(str(error)) from None
        msgspec.structs.force_setattr(self, "wait_s", wait_s)
        msgspec.structs.force_setattr(self, "jitter_s", jitter_s)


class SetCondition(Strict, frozen=True):
    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str = ""
    message: str = ""


class RecordEvent(Strict, frozen=True):
    reason: str
    message: str
    """`{container}`, `{image}`, `{pod}` and `{namespace}` are replaced."""
    type: Literal["Normal", "Warning"] = "Normal"


class Next(Strict, frozen=True):
    verb: str
    code: int = 0
    code_from: str = ""
    """An annotation with the exit code."""
    reason: str = ""
    message: str = ""
    conditions: tuple[SetCondition, ...] = ()
    events: tuple[RecordEvent, ...] = ()


class Stage(Strict, frozen=True):
    name: str
    of: Subject
    when: When
    next: Next
    after: After = After(wait="0s")

    def __post_init__(self) -> None:
        if self.when.state not in _STATES[self.of]:
            states = ", ".join(_STATES[self.of])
            raise ValueError(f"when.state: a {self.of} is never {self.when.state!r}; it is one of {states}")
        if self.next.verb not in _VERBS[self.of]:
            verbs = ", ".join(_VERBS[self.of])
            raise ValueError(f"next.verb: no verb {self.next.verb!r} of a {self.of}; there are {verbs}")
        if not 0 <= self.next.code <= _LARGEST_CODE:
            raise ValueError(f"next.code: {self.next.code} is not a number from 0 to {_LARGEST_CODE}")

    def fits(
        self, facts: PodFacts, role: Role | None, *, has_error: bool, component: ComponentPod | None = None
    ) -> bool:
        when = self.when
        if when.roles and role not in when.roles:
            return False
        if when.has_error is not None and when.has_error is not has_error:
            return False
        if when.owners and facts.owner_kind() not in when.owners:
            return False
        if when.restart_policies and facts.spec.restart_policy not in when.restart_policies:
            return False
        if when.components and not _is_listed(component.name if component is not None else "", when.components):
            return False
        if when.faults and (component.fault_of(role) if component is not None else "") not in when.faults:
            return False
        meta = facts.metadata
        return _holds(when.annotations, meta.annotations, PREFIX) and _holds(when.labels, meta.labels, "")


def _is_listed(name: str, listed: tuple[str, ...]) -> bool:
    return name in listed or (bool(name) and ANY in listed)


def _holds(wanted: Mapping[str, str | None], found: Mapping[str, str], prefix: str) -> bool:
    for name, value in wanted.items():
        have = found.get(name if "/" in name else prefix + name)
        if (have is None) if value == ANY else (have != value):
            return False
    return True


class Stages:
    """All stages by the part of the pod that they apply to. A later stage replaces an earlier one of the same name."""

    def __init__(self, stages: Iterable[Stage]) -> None:
        self.by_name = {stage.name: stage for stage in stages}
        self._by_state: dict[tuple[Subject, str], tuple[Stage, ...]] = {}
        for stage in self.by_name.values():
            key = (stage.of, stage.when.state)
            self._by_state[key] = (*self._by_state.get(key, ()), stage)

    def of(self, subject: Subject, state: str) -> tuple[Stage, ...]:
        return self._by_state.get((subject, state), ())
