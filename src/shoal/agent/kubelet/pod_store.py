"""Stores each pod of this node with its progress, so that a kubelet that was killed continues with it."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from shoal.agent.kubelet.gpus import HeldIds
from shoal.agent.kubelet.mounts import mounted_below
from shoal.agent.kubelet.private_files import write_private
from shoal.client.kubelet.pod_run import PodRun

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")


class StoredPod(msgspec.Struct):
    run: PodRun
    pod: Obj
    """The object when the pod was admitted."""
    held: tuple[HeldIds, ...] = ()


class PodStore:
    """`folder` has one folder for each pod, by uid."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def folder_of(self, uid: str) -> Path:
        return self._folder / uid

    def put(self, stored: StoredPod) -> None:
        """Raises OSError."""
        folder = self.folder_of(stored.run.uid)
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        write_private(folder / "pod.json", msgspec.json.encode(stored))

    def all(self) -> Iterator[StoredPod]:
        """Unreadable files are left out: their pods are started again."""
        for file in sorted(self._folder.glob("*/pod.json")):
            try:
                yield msgspec.json.decode(file.read_bytes(), type=StoredPod)
            except (OSError, msgspec.DecodeError):
                continue

    def remove(self, uid: str) -> None:
        """It leaves a folder in which something is mounted, whose files are not those of the pod."""
        mounted = mounted_below(self.folder_of(uid))
        if mounted:
            _log.warning("the folder of a pod is not removed, because %s is mounted", mounted[0])
            return
        shutil.rmtree(self.folder_of(uid), ignore_errors=True)
