"""Reads from /proc what processes have used: for containers without a cgroup that counts it.

A process that has ended counts for its parent, as soon as that has noticed the end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
_PARENT, _USED, _RESIDENT = 1, slice(11, 15), 21
"""Fields behind the name of the program: the parent, the times of the process and of its ended children, the pages."""


class ProcessUse(NamedTuple):
    parent: int
    cpu_s: float
    memory_bytes: int


def all_processes(proc: Path = Path("/proc")) -> Mapping[int, ProcessUse]:
    found = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                ticks = sum(map(int, fields[_USED]))
                found[int(folder.name)] = ProcessUse(
                    int(fields[_PARENT]), ticks / _TICKS, int(fields[_RESIDENT]) * _PAGE
                )
    return found


def below(processes: Mapping[int, ProcessUse], root: int) -> set[int]:
    """The descendants of a process."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, one in processes.items():
        children[one.parent].append(pid)
    found: set[int] = set()
    left = [root]
    while left:
        new = [pid for pid in children[left.pop()] if pid not in found]
        found.update(new)
        left += new
    return found


def total(processes: Mapping[int, ProcessUse], pids: Iterable[int]) -> tuple[float, int]:
    """Seconds of processors, and bytes of memory. Shared pages count for each process."""
    known = [processes[pid] for pid in pids if pid in processes]
    return sum(one.cpu_s for one in known), sum(one.memory_bytes for one in known)
