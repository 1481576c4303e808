"""Defines what a container runtime does for the kubelet: start a container, wait for its end, stop it, run
commands in it.

One adapter runs plain processes (`process/`), one containers (`cri/`). A run is identified by pod, container and
attempt; all facts about it are outside this process, so that a kubelet that was killed continues with the runs that it
finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from shoal.agent.kubelet.container_settings import ContainerSettings


class RunKey(NamedTuple):
    """One run of a container."""

    pod: str
    """The pod's uid."""
    container: str
    attempt: int


class ContainerLimits(msgspec.Struct, frozen=True):
    cpu_milli: int | None = None
    memory_bytes: int | None = None
    cpu_request_milli: int = 0
    """The share of a busy processor; only for containers."""


class Launch(msgspec.Struct, frozen=True):
    """What is started."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None
    """The working directory; None: the image defines it."""
    limits: ContainerLimits = ContainerLimits()
    image: str = ""
    address: str = ""
    """Of the pod; empty: that of the node."""
    container: ContainerSettings | None = None
    """What only containers have; None for a process."""


class Started(msgspec.Struct, frozen=True):
    """A run that was started, with its ids at the runtime, if it has any."""

    id: str = ""
    image_id: str = ""


class Exit(msgspec.Struct, frozen=True):
    code: int
    started_s: float
    finished_s: float
    reason: str = ""
    """StartError, OOMKilled, ContainerStatusUnknown; empty: by the code."""
    message: str = ""


class StartRefused(Exception):  # noqa: N818 - the container's state has it, as a reason
    """A container cannot be started now. The kubelet reports it and tries again."""

    def __init__(self, reason: str, message: str, *, retry_s: float = 10.0, is_told: bool = False) -> None:
        """`is_told`: its Event has been recorded."""
        super().__init__(message)
        self.reason, self.message, self.retry_s, self.is_told = reason, message, retry_s, is_told


class Command(Protocol):
    """A command that runs in a container."""

    async def read(self) -> tuple[int, bytes] | None:
        """The next output: 1 or 2 for its stream, and the bytes; None at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    def end_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def code(self) -> int: ...

    def kill(self) -> None: ...


class Consumption(msgspec.Struct, frozen=True):
    """What a run has used until a moment."""

    at_s: float
    cpu_s: float
    memory_bytes: int
    """What it has at that moment, without what the kernel could give back."""


class ByteStream(Protocol):
    """A connection, in both directions."""

    async def read(self) -> bytes:
        """Empty at the end."""
        ...

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class PodRuntime(Protocol):
    name: str
    """The scheme of the ids of its containers."""

    async def start(self, key: RunKey, launch: Launch) -> Started:
        """Start it, unless it was started before. Raises StartRefused."""
        ...

    async def find(self, key: RunKey) -> Started | None:
        """This run, if it was started at any time, by this process or an earlier one. Raises TemporaryError if that
        is not known now."""
        ...

    async def wait(self, key: RunKey) -> Exit:
        """Wait for the end of a started run."""
        ...

    async def stop(self, key: RunKey, grace_s: float) -> None:
        """Request its end, and kill all its processes when the time is over. Returns when it has ended."""
        ...

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False, is_short: bool = False) -> Command:
        """Run a command in it; `is_short`: it has no input, and its output is read when it has ended. Raises
        StartRefused, and TemporaryError if the runtime cannot run it now; so do the methods of a short command."""
        ...

    async def attach(self, key: RunKey, *, has_input: bool, tty: bool) -> Command:
        """Follow what the program of a running container prints, and give it input if it takes any; both as the spec of
        the container has it. The end of the command leaves the program as it is. Raises StartRefused and
        TemporaryError."""
        ...

    async def forward_ports(self, pod: str) -> ByteStream:
        """Frames of SPDY 3.1, by which a client opens connections to ports of the pod, as `portforward.k8s.io` defines
        it. Raises StartRefused and TemporaryError."""
        ...

    async def consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        """Of those runs that are running. Raises TemporaryError."""
        ...

    async def written(self, keys: Sequence[RunKey]) -> Mapping[RunKey, int]:
        """The bytes that running containers have written to file systems of their own. Raises TemporaryError."""
        ...

    def log_files(self, key: RunKey) -> Sequence[Path]:
        """The files of its log, oldest first."""
        ...

    async def remove(self, pod: str) -> None:
        """Remove what is left of the runs of a pod. Raises TemporaryError if that is not known to be done."""
        ...
