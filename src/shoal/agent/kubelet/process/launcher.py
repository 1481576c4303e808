"""Prepares the containers of process pods: folders for the volumes, and variables that say where they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from shoal.agent.kubelet.environment import Surroundings, environment_of, words_of
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import LaunchInputs, limits_of, termination_file
from shoal.agent.kubelet.pod_fields import Addresses
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.runtime import Launch
from shoal.agent.kubelet.volumes import provide

Obj = dict[str, Any]
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ProcessLauncher:
    """Implements Launcher."""

    def __init__(self, runtime: ProcessRuntime, gpus: NodeGpus) -> None:
        self.runtime = runtime
        self._gpus = gpus

    async def launch(self, inputs: LaunchInputs) -> Launch:
        spec, folder = inputs.container, inputs.folder
        addresses = Addresses(inputs.node_address, inputs.node_address)
        around = Surroundings(addresses, inputs.allocatable, inputs.sources)
        paths = await asyncio.to_thread(provide, inputs.pod, folder / "volumes", around, inputs.tokens)
        work = folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        root = folder / "mounts" / inputs.name
        mounts = _linked(root, spec, paths)
        given, devices = _given(inputs, work, root, mounts), self._gpus.environment(inputs.uid, inputs.name)
        around = Surroundings(addresses, inputs.allocatable, inputs.sources, given, devices)
        environment = environment_of(inputs.pod, spec, around)
        command = (*words_of(spec, "command", environment), *words_of(spec, "args", environment))
        where = Path(spec["workingDir"]) if spec.get("workingDir") else work
        return Launch(command, environment, where, limits_of(spec), spec.get("image", ""))

    async def end(self, uid: str, folder: Path) -> None:
        """Ended processes have nothing but files."""

    async def remove(self, uid: str, folder: Path) -> None:  # noqa: ARG002 - the folder has nothing but files
        await self.runtime.remove(uid)


def _given(inputs: LaunchInputs, work: Path, root: Path, mounts: dict[str, Path]) -> dict[str, str]:
    message = termination_file(inputs.folder, inputs.name)
    message.unlink(missing_ok=True)
    return {
        **inputs.server,
        "PATH": _PATH,
        "HOME": str(work),
        "HOSTNAME": inputs.pod["spec"].get("hostname") or inputs.pod["metadata"]["name"],
        "SHOAL_MOUNTS": str(root),
        "SHOAL_TERMINATION_LOG": str(message),
        **{f"SHOAL_MOUNT_{_variable(name)}": str(path) for name, path in mounts.items()},
    }


def _linked(root: Path, container: Obj, volumes: dict[str, Path]) -> dict[str, Path]:
    """Links at the mount paths below `root`; returns where each volume is."""
    found: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or ():
        link = root / mount["mountPath"].strip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(volumes[mount["name"]])
        found[mount["name"]] = volumes[mount["name"]]
    return found


def _variable(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "_")
