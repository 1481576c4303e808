"""Limits the number of processes of a pod in containers, where the interface to the runtime has no field for it.

With cgroups of version 2 it is a value of the container's own group. With version 1 each pod has a group, in which the
runtime makes those of its containers; it is limited before the first container starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_PARENT = "shoal-pods"


class PodCgroups:
    """`root`: where the hierarchies are mounted; `processes`: the most processes and threads of one pod, or of one
    container."""

    def __init__(self, processes: int, root: Path = Path("/sys/fs/cgroup")) -> None:
        self._processes, self._root = processes, root
        self._is_unified = (root / "cgroup.controllers").exists()

    def make(self, pod: str) -> str:
        """The group of a pod, by its path below each hierarchy; empty if it needs none. Raises OSError."""
        if self._is_unified:
            return ""
        name = f"{_PARENT}/{pod}"
        folder = self._root / "pids" / name
        folder.parent.mkdir(exist_ok=True)
        folder.mkdir(exist_ok=True)
        (folder / "pids.max").write_text(str(self._processes))
        return f"/{name}"

    def values(self) -> Mapping[str, str]:
        """For each container's group of version 2."""
        return {"pids.max": str(self._processes)} if self._is_unified else {}

    def remove(self, pod: str) -> None:
        """The groups in which the runtime has removed those of the containers."""
        if self._is_unified:
            return
        for folder in self._root.glob(f"*/{_PARENT}/{pod}"):
            with suppress(OSError):
                folder.rmdir()
