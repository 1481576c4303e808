"""Defines what the workers of containers need of their pod."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Protocol

from shoal.agent.kubelet.runtime import Launch, PodRuntime, RunKey
from shoal.client.clock import Clock
from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.kubelet.probe_result import ProbeResult

Obj = dict[str, Any]


class PodScene(Protocol):
    run: PodRun
    facts: PodFacts
    clock: Clock
    stopping: asyncio.Event
    probed: Counter[ProbeResult]
    """The probes since the start of this process."""

    @property
    def runtime(self) -> PodRuntime: ...

    @property
    def address(self) -> str: ...

    def changed(self) -> None:
        """Store the run's progress, and report it."""
        ...

    def tell(self, reason: str, message: str, container: str, *, warns: bool = False) -> None:
        """Record an Event."""
        ...

    def spec_of(self, container: str) -> Obj: ...

    async def launch_of(self, container: str) -> Launch:
        """Raises StartRefused."""
        ...

    def last_words(self, key: RunKey, code: int) -> str:
        """The container's termination message."""
        ...
