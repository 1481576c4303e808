"""Provides the volumes of a pod for containers, whose users differ from the user of this process.

An emptyDir may be written by every user of the pod. With `fsGroup` the volumes of the pod belong to that group. An
emptyDir in memory is unmounted with the pod.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from shoal.agent.kubelet.memory_volumes import mount_if_in_memory
from shoal.agent.kubelet.volumes import FileAccess, Tokens, kind_of, provide
from shoal.client.kubelet.environment import Surroundings

Obj = dict[str, Any]
_EVERY_USER, _TOKEN_MODE = 0o777, 0o644


def access_of(pod: Obj) -> FileAccess:
    """The users of containers differ from the user of this process."""
    return FileAccess(_TOKEN_MODE, (pod["spec"].get("securityContext") or {}).get("fsGroup"))


def provide_for_containers(pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> dict[str, Path]:
    """As `provide`; for all containers of a pod, again at each start. Raises VolumeFault, and OSError."""
    access = access_of(pod)
    for volume in pod["spec"].get("volumes") or ():
        path = folder / volume["name"]
        if kind_of(volume) != "emptyDir":
            continue
        is_new = not path.exists()
        path.mkdir(parents=True, exist_ok=True)
        mount_if_in_memory(volume, path, _EVERY_USER)
        if is_new:
            path.chmod(_EVERY_USER)
            if access.group is not None:
                _give(path, access.group)
    return provide(pod, folder, around, tokens, access)


def _give(path: Path, group: int) -> None:
    os.chown(path, -1, group)
    path.chmod(path.stat().st_mode & 0o7777 | 0o2070)
