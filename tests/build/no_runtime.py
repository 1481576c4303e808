"""A container runtime that must not be called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from shoal.agent.kubelet.runtime import ByteStream, Command, Consumption, Exit, Launch, RunKey, Started


class NoRuntime:
    name = "none"

    async def start(self, key: RunKey, launch: Launch) -> Started:
        raise AssertionError(key)

    async def find(self, key: RunKey) -> Started | None:
        raise AssertionError(key)

    async def wait(self, key: RunKey) -> Exit:
        raise AssertionError(key)

    async def stop(self, key: RunKey, grace_s: float) -> None:
        raise AssertionError(key)

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False, is_short: bool = False) -> Command:
        raise AssertionError(key)

    async def attach(self, key: RunKey, *, has_input: bool, tty: bool) -> Command:
        raise AssertionError(key)

    async def written(self, keys: Sequence[RunKey]) -> Mapping[RunKey, int]:
        raise AssertionError(keys)

    async def consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        raise AssertionError(keys)

    async def forward_ports(self, pod: str) -> ByteStream:
        raise AssertionError(pod)

    def log_files(self, key: RunKey) -> Sequence[Path]:
        raise AssertionError(key)

    async def remove(self, pod: str) -> None:
        raise AssertionError(pod)
