"""Defines the protocol between the kubelets and the endpoints that serve logs and metrics of a simulated node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from shoal.client.kubelet.probe_result import ProbeResult
from shoal.embedded.apiserver.streams.live_command import LiveCommand
from shoal.embedded.apiserver.streams.terminal import CommandOutput

Obj = dict[str, Any]


class LogOptions(msgspec.Struct, frozen=True):
    """The validated options of a log request."""

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
    """The current usage of a container or a whole node."""

    cpu_milli: int
    memory_bytes: int
    cpu_s: float | None = None
    """What was measured until now; None: the usage is simulated, and constant."""


class MeasuredNode(Protocol):
    """A node whose usage is known."""

    name: str

    def usage(self) -> Usage: ...

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        """Running pods, with the usage of each container."""
        ...

    def is_reachable(self) -> bool:
        """False while the node has failed or is disconnected."""
        ...


class NodeView(Protocol):
    name: str

    def pod(self, namespace: str, name: str) -> Obj | None:
        """A pod that this node runs or ran, with the kubelet's current status."""
        ...

    def log(self, pod_uid: str, container: str, *, previous: bool = False) -> Sequence[LogLine]:
        """All lines so far, oldest first; those of a finished run stay until the pod is deleted."""
        ...

    def is_running(self, pod_uid: str, container: str) -> bool:
        """Whether more lines may follow."""
        ...

    def run(self, pod_uid: str, container: str, command: Sequence[str]) -> CommandOutput:
        """Run a command inside a container (`nvidia-smi`, `env`, ...)."""
        ...

    def usage(self) -> Usage: ...

    def size(self) -> Usage:
        """The capacity of the machine."""
        ...

    def pod_usage(self) -> Sequence[tuple[Obj, dict[str, Usage]]]:
        """Running pods (as `pod`), with the usage of each container."""
        ...

    def dcgm(self) -> str:
        """The exposition text of this node's DCGM exporter."""
        ...

    def is_reachable(self) -> bool:
        """False while the node has failed or is disconnected."""
        ...


class ForwardedPorts(Protocol):
    """Frames of SPDY 3.1, by which a client opens connections to ports of a pod."""

    async def read(self) -> bytes:
        """Empty at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


@runtime_checkable
class RealNodeView(Protocol):
    """A node whose pods run processes. All raise UserError if it is not possible."""

    async def open_command(self, pod_uid: str, container: str, command: Sequence[str], *, tty: bool) -> LiveCommand: ...

    async def attach(self, pod_uid: str, container: str, *, takes_input: bool) -> LiveCommand:
        """Follow the program of the container; it has input only if its spec says so."""
        ...

    async def forward_ports(self, pod_uid: str) -> ForwardedPorts: ...

    def probe_counts(self) -> Sequence[tuple[Obj, Mapping[ProbeResult, int]]]:
        """Pods, with the number of their probes by result."""
        ...


class NodeViews(Protocol):
    def node(self, name: str) -> NodeView | None: ...

    def names(self) -> Sequence[str]: ...


class MeasuredNodes(Protocol):
    def node(self, name: str) -> MeasuredNode | None: ...

    def names(self) -> Sequence[str]: ...
