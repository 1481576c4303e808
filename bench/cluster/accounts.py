"""What a process has used, as Linux counts it: processor time of all its threads, and memory.

Rejected: utime and stime of `/proc/PID/stat`. They come in hundredths of a second, which is 40 lease updates.
"""

from __future__ import annotations

from pathlib import Path


def processor_s(pid: int) -> float:
    """Of the threads that live: a server's threads end when it does."""
    used = 0
    for schedule in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        used += int(schedule.read_text().split()[0])
    return used / 1e9


def resident_mb(pid: int) -> float:
    return _status_mb(pid, "VmRSS")


def most_resident_mb(pid: int) -> float:
    return _status_mb(pid, "VmHWM")


def _status_mb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {name} of process {pid}")
