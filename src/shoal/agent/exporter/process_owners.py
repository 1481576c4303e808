"""Finds the pod of a process on this machine: by the control group of the process, and the pod's folder of logs.

The kubelet puts the UID of a pod into the names of its control groups, and the namespace, name and UID into the name of
its folder of logs. Both are on the machine, so the API server is not asked. A process outside a pod has no owner.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_UID = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})")
_PARTS = 3


class PodOfProcess(NamedTuple):
    namespace: str
    name: str
    uid: str


class ProcessOwners:
    def __init__(self, proc: Path = Path("/proc"), logs: Path = Path("/var/log/pods")) -> None:
        self._proc, self._logs = proc, logs
        self._pods: Mapping[str, PodOfProcess] = {}

    def pod_of(self, pid: int) -> PodOfProcess | None:
        try:
            text = (self._proc / str(pid) / "cgroup").read_text()
        except (OSError, UnicodeDecodeError):
            return None
        found = _UID.search(text)
        if found is None:
            return None
        uid = found[1].replace("_", "-")
        if uid not in self._pods:
            self._pods = self._listed()
        return self._pods.get(uid)

    def uid_of(self, namespace: str, name: str) -> str:
        """The UID of the newest pod of this name; empty if unknown."""
        if not any((pod.namespace, pod.name) == (namespace, name) for pod in self._pods.values()):
            self._pods = self._listed()
        uids = [pod.uid for pod in self._pods.values() if (pod.namespace, pod.name) == (namespace, name)]
        return uids[-1] if uids else ""

    def _listed(self) -> Mapping[str, PodOfProcess]:
        """From the oldest to the newest."""
        try:
            folders = sorted(self._logs.iterdir(), key=_changed_s)
        except OSError:
            return {}
        pods = {}
        for folder in folders:
            parts = folder.name.split("_")
            if len(parts) == _PARTS:
                pods[parts[2]] = PodOfProcess(*parts)
        return pods


def _changed_s(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
