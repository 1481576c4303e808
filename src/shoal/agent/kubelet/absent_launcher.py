"""The runtime of pods that this machine cannot run; they are refused before they are started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.agent.kubelet.launches import LaunchInputs
from shoal.agent.kubelet.runtime import Command, Exit, Launch, RunKey, Started, StartRefused

_REASON = "RuntimeNotAvailable"


class AbsentRuntime:
    """Implements PodRuntime."""

    name = "none"

    def __init__(self, problem: str) -> None:
        self._problem = problem

    async def start(self, key: RunKey, launch: Launch) -> Started:  # noqa: ARG002
        raise StartRefused(_REASON, self._problem)

    async def find(self, key: RunKey) -> Started | None:  # noqa: ARG002
        return None

    async def wait(self, key: RunKey) -> Exit:  # noqa: ARG002
        return Exit(137, 0.0, 0.0, "ContainerStatusUnknown", self._problem)

    async def stop(self, key: RunKey, grace_s: float) -> None:
        """Nothing runs."""

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False, is_short: bool = False) -> Command:  # noqa: ARG002
        raise StartRefused(_REASON, self._problem)

    def log_files(self, key: RunKey) -> Sequence[Path]:  # noqa: ARG002
        return ()

    async def remove(self, pod: str) -> None:
        """Nothing is left."""


class AbsentLauncher:
    """Implements Launcher."""

    def __init__(self, problem: str) -> None:
        self.runtime = AbsentRuntime(problem)
        self._problem = problem

    async def launch(self, inputs: LaunchInputs) -> Launch:  # noqa: ARG002
        raise StartRefused(_REASON, self._problem)

    async def end(self, uid: str, folder: Path) -> None:
        """Nothing runs."""

    async def remove(self, uid: str, folder: Path) -> None:
        """Nothing is left."""
