"""ContainerLimits the processes of a container by cgroups, where this user may create them: version 1 or 2.

Each container run has a group of its own below `shoal`. Rejected: one group for each pod with groups of containers in
it. The pod's sum is not needed for limits, and removal would need an order.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from shoal.agent.kubelet.runtime import ContainerLimits

ROOT = Path("/sys/fs/cgroup")
_CONTROLLERS = ("pids", "memory", "cpu")
_PERIOD_US = 100_000


class Cgroups:
    """`root`: where the hierarchies are mounted. Nothing is created before `make`."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._is_unified = (root / "cgroup.controllers").exists()
        self._allowed: frozenset[str] | None = None

    def allowed(self) -> frozenset[str]:
        """The controllers by which this user may limit processes."""
        if self._allowed is None:
            self._allowed = self._unified() if self._is_unified else self._separate()
        return self._allowed

    def make(self, name: str, limits: ContainerLimits, processes: int) -> list[str]:
        """Create the groups of one run, with its limits; returns their folders. Raises OSError."""
        folders = self._folders(name)
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        for controller, file, text in self._values(limits, processes):
            if controller in folders:
                (folders[controller] / file).write_text(text)
        return list(dict.fromkeys(str(folder) for folder in folders.values()))

    def was_out_of_memory(self, name: str) -> bool:
        """Whether the kernel killed a process of this run for its memory limit."""
        folder = self._folders(name).get("memory")
        if folder is None:
            return False
        with suppress(OSError):
            for line in (folder / ("memory.events" if self._is_unified else "memory.oom_control")).open():
                key, _, value = line.partition(" ")
                if key == "oom_kill" and value.strip() != "0":
                    return True
        return False

    def processes(self, name: str) -> set[int]:
        """Those of a run, as far as there is a group of it."""
        for folder in self._folders(name).values():
            with suppress(OSError, ValueError):
                return {int(line) for line in (folder / "cgroup.procs").read_text().split()} - {0}
        return set()

    def cpu_s(self, name: str) -> float | None:
        """What the processes of a run have used of the processors; None where no group counts it."""
        folder = self._folders(name).get("cpu")
        if folder is None:
            return None
        with suppress(OSError, ValueError):
            if not self._is_unified:
                return int((folder / "cpuacct.usage").read_text()) / 1_000_000_000
            used = _value_in(folder / "cpu.stat", "usage_usec")
            return None if used is None else used / 1_000_000
        return None

    def memory_bytes(self, name: str) -> int | None:
        """What the processes of a run have, without files that were not read for some time; None where no group counts
        it."""
        folder = self._folders(name).get("memory")
        if folder is None:
            return None
        usage, inactive = "memory.usage_in_bytes", "total_inactive_file"
        if self._is_unified:
            usage, inactive = "memory.current", "inactive_file"
        with suppress(OSError, ValueError):
            return max(int((folder / usage).read_text()) - (_value_in(folder / "memory.stat", inactive) or 0), 0)
        return None

    def remove(self, name: str) -> None:
        for folder in self._folders(name).values():
            with suppress(OSError):
                folder.rmdir()

    def _folders(self, name: str) -> dict[str, Path]:
        below = self._root if self._is_unified else None
        return {one: (below or self._root / one) / "shoal" / name for one in _CONTROLLERS if one in self.allowed()}

    def _values(self, limits: ContainerLimits, processes: int) -> list[tuple[str, str, str]]:
        found = [("pids", "pids.max", str(processes))]
        if limits.memory_bytes:
            file = "memory.max" if self._is_unified else "memory.limit_in_bytes"
            found.append(("memory", file, str(limits.memory_bytes)))
        if limits.cpu_milli:
            quota = max(limits.cpu_milli * _PERIOD_US // 1000, 1000)
            if self._is_unified:
                found.append(("cpu", "cpu.max", f"{quota} {_PERIOD_US}"))
            else:
                found += [("cpu", "cpu.cfs_period_us", str(_PERIOD_US)), ("cpu", "cpu.cfs_quota_us", str(quota))]
        return found

    def _separate(self) -> frozenset[str]:
        found = []
        for one in _CONTROLLERS:
            with suppress(OSError):
                if (self._root / one / "cgroup.procs").exists():
                    (self._root / one / "shoal").mkdir(exist_ok=True)
                    found.append(one)
        return frozenset(found)

    def _unified(self) -> frozenset[str]:
        try:
            (self._root / "shoal").mkdir(exist_ok=True)
            for one in _CONTROLLERS:
                for folder in (self._root, self._root / "shoal"):
                    with suppress(OSError):
                        (folder / "cgroup.subtree_control").write_text(f"+{one}")
            granted = (self._root / "shoal" / "cgroup.subtree_control").read_text().split()
        except OSError:
            return frozenset()
        return frozenset(granted) & frozenset(_CONTROLLERS)


def _value_in(file: Path, key: str) -> int | None:
    """A value of a file with a key and a value in each line."""
    for line in file.read_text().splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return None
