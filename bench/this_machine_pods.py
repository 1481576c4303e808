"""Waits for pods of this machine, and reads the processor time of Shoal's processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from shoal.client.kind import PODS
from shoal.client.port import Api

Obj = dict[str, Any]


async def pods_until(api: Api, look: Callable[[dict[str, Obj]], bool]) -> None:
    """Returns when it is true of the pods, by name."""
    listed = await api.list(PODS, "default")
    seen = {item.name: item.obj() for item in listed.items}
    async with aclosing(api.watch(PODS, listed.version, "default")) as batches:
        while not look(seen):
            for change in await anext(batches):
                if change.item is not None and change.kind == "DELETED":
                    seen.pop(change.item.name, None)
                elif change.item is not None:
                    seen[change.item.name] = change.item.obj()


def processor_s(server: int) -> float:
    """The processor time of the server and of all supervisors of this machine."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            command = (path / "cmdline").read_bytes()
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(path.name) == server or b"process/supervisor.py" in command:
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total
