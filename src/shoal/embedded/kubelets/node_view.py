"""The port between the kubelets and the endpoints that serve logs and metrics of a simulated node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from shoal.embedded.apiserver.streams.terminal import CommandOutput

Obj = dict[str, Any]


class LogOptions(msgspec.Struct, frozen=True):
    """The options of a log request, checked."""

    container: str
    previous: bool = False
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_s: float | None = None
    """Seconds since 1970."""
    limit_bytes: int | None = None


class LogLine(msgspec.Struct, frozen=True):
    at_s: float
    text: str


class Usage(msgspec.Struct, frozen=True):
    """What a container, or a whole node, uses now."""

    cpu_milli: int
    memory_bytes: int


class NodeView(Protocol):
    name: str

    def pod(self, namespace: str, name: str) -> Obj | None:
        """A pod that this node runs or ran, as the kubelet knows it."""
        ...

    def log(self, pod_uid: str, container: str, *, previous: bool = False) -> Sequence[LogLine]:
        """All lines so far, oldest first; those of a run that is over stay until the pod is deleted."""
        ...

    def is_running(self, pod_uid: str, container: str) -> bool:
        """Whether more lines may come."""
        ...

    def run(self, pod_uid: str, container: str, command: Sequence[str]) -> CommandOutput:
        """A command inside a container (`nvidia-smi`, `env`, ...)."""
        ...

    def usage(self) -> Usage: ...

    def size(self) -> Usage:
        """All that the machine has."""
        ...

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        """Running pods (as `pod`), with what each container uses."""
        ...

    def dcgm(self) -> str:
        """The exposition text of this node's DCGM exporter."""
        ...

    def is_reachable(self) -> bool:
        """False while the node has failed or is cut off."""
        ...


class NodeViews(Protocol):
    def node(self, name: str) -> NodeView | None: ...

    def names(self) -> Sequence[str]: ...
