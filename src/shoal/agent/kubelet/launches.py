"""Defines how a container is prepared for its start, which differs between runtimes, and reads its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from shoal.agent.kubelet.runtime import ContainerLimits, Launch, PodRuntime
from shoal.agent.kubelet.volumes import Tokens
from shoal.client.kubelet.environment import Surroundings
from shoal.client.kubelet.references import Reference, Sources
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

Obj = dict[str, Any]


class Tell(Protocol):
    def __call__(self, reason: str, message: str, container: str = "", *, warns: bool = False) -> None:
        """Record an Event of the pod, or of one of its containers."""
        ...


class LaunchInputs(msgspec.Struct, frozen=True):
    """What a container is made of."""

    pod: Obj
    container: Obj
    folder: Path
    """Of the pod, on this machine."""
    node_address: str
    allocatable: Mapping[str, str]
    sources: Sources
    tokens: Tokens
    tell: Tell
    handler: Callable[[], Awaitable[str]]
    """Reads that of the pod's RuntimeClass; empty without one."""
    server: Mapping[str, str] = {}
    """The variables by which programs find the API server."""

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def name(self) -> str:
        return str(self.container["name"])

    def pull_secrets(self) -> Sequence[Mapping[str, bytes]]:
        """The values of those that exist."""
        named = self.pod["spec"].get("imagePullSecrets") or ()
        found = (self.sources.get(Reference("secret", one.get("name", ""))) for one in named)
        return [one for one in found if one is not None]


class Launcher(Protocol):
    """Runs the pods of one runtime."""

    @property
    def runtime(self) -> PodRuntime: ...

    async def launch(self, inputs: LaunchInputs) -> Launch:
        """Raises StartRefused, MissingSourceError, VolumeFault and OSError."""
        ...

    async def refresh(self, pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> None:
        """Write the files of volumes that have changed since the launch. Raises VolumeFault and OSError."""
        ...

    async def end(self, uid: str, folder: Path) -> None:
        """Free what a pod needs only while its containers run; they have ended. Raises TemporaryError."""
        ...

    async def remove(self, uid: str, folder: Path) -> None:
        """Remove what is left of a pod, but not its folder. Raises TemporaryError."""
        ...


def termination_file(folder: Path, container: str) -> Path:
    """The file of a container's termination message on this machine."""
    return folder / f"termination-{container}"


def limits_of(container: Obj) -> ContainerLimits:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    requested = {**limits, **(resources.get("requests") or {})}
    cpu, memory = _nano(limits, "cpu"), _nano(limits, "memory")
    return ContainerLimits(
        None if cpu is None else -(-cpu // 1_000_000),
        None if memory is None else -(-memory // 1_000_000_000),
        (_nano(requested, "cpu") or 0) // 1_000_000,
    )


def _nano(amounts: Mapping[str, Any], resource: str) -> int | None:
    try:
        return Quantity.parse(str(amounts[resource])).nano if resource in amounts else None
    except UserError:
        return None
