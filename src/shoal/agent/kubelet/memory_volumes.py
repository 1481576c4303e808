"""Mounts an emptyDir with the medium Memory: a file system in memory, with its own size limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.agent.kubelet.mounts import mount_memory
from shoal.agent.kubelet.volumes import VolumeFault
from shoal.units.quantity import NANO, Quantity

Obj = dict[str, Any]


def mount_if_in_memory(volume: Obj, path: Path, mode: int) -> None:
    """`path`: its folder, which exists. Raises VolumeFault."""
    empty = volume.get("emptyDir") or {}
    if empty.get("medium") != "Memory" or path.is_mount():
        return
    limit = empty.get("sizeLimit")
    options = f"mode={mode:04o}" + (f",size={Quantity.parse(str(limit)).nano // NANO}" if limit else "")
    try:
        mount_memory(path, options)
    except OSError as error:
        words = f'MountVolume.SetUp failed for volume "{volume["name"]}" : mount failed: {error.strerror}'
        raise VolumeFault(words) from None
