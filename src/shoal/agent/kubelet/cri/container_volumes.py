"""Provides the volumes of a pod for containers, whose users differ from the user of this process.

An emptyDir may be written by every user of the pod. With `fsGroup` the volumes of the pod belong to that group. An
emptyDir with the medium Memory is a file system in memory, with its own size limit; it is unmounted with the pod.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.agent.kubelet.environment import Surroundings
from shoal.agent.kubelet.volumes import Tokens, VolumeFault, kind_of, provide
from shoal.units.quantity import Quantity

Obj = dict[str, Any]
_MOUNTS = Path("/proc/self/mountinfo")
_EVERY_USER, _READ_BY_ALL, _TOKEN_MODE = 0o777, 0o755, 0o644
_DETACH = 2
_NO_SUID_NO_DEVICES = 2 | 4


def provide_for_containers(pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> dict[str, Path]:
    """As `provide`; for all containers of a pod, again at each start. Raises VolumeFault, and OSError."""
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    for volume in pod["spec"].get("volumes") or ():
        path = folder / volume["name"]
        if kind_of(volume) != "emptyDir":
            continue
        empty, is_new = volume.get("emptyDir") or {}, not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        if empty.get("medium") == "Memory" and not path.is_mount():
            _mount_memory(path, empty.get("sizeLimit"), volume["name"])
        if is_new:
            path.chmod(_EVERY_USER)
            if group is not None:
                _give(path, group)
    found = provide(pod, folder, around, tokens, token_mode=_TOKEN_MODE)
    for volume in pod["spec"].get("volumes") or ():
        if kind_of(volume) not in ("emptyDir", "hostPath"):
            for path in (found[volume["name"]], *found[volume["name"]].rglob("*")):
                if path.is_dir():
                    path.chmod(_READ_BY_ALL)
                if group is not None:
                    _give(path, group)
    return found


def release_volumes(folder: Path) -> None:
    """Unmount what is mounted below a folder."""
    below = f"{folder}/"
    with suppress(OSError):
        mounted = [line.split()[4].replace("\\040", " ") for line in _MOUNTS.read_text().splitlines()]
        for path in reversed(mounted):
            if path.startswith(below):
                ctypes.CDLL(None).umount2(os.fsencode(path), _DETACH)


def may_mount() -> bool:
    return os.geteuid() == 0


def _mount_memory(path: Path, limit: Any, name: str) -> None:
    options = f"mode=0777,size={Quantity.parse(str(limit)).nano // 1_000_000_000}" if limit else "mode=0777"
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"tmpfs", os.fsencode(path), b"tmpfs", _NO_SUID_NO_DEVICES, options.encode()) != 0:
        why = os.strerror(ctypes.get_errno())
        raise VolumeFault(f'MountVolume.SetUp failed for volume "{name}" : mount failed: {why}')


def _give(path: Path, group: int) -> None:
    os.chown(path, -1, group)
    mode = path.stat().st_mode & 0o7777
    path.chmod(mode | (0o2070 if path.is_dir() else (mode & 0o600) >> 3))
