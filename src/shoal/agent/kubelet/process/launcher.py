"""Prepares the containers of process pods: folders for the volumes, and variables that say where they are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import LaunchInputs, limits_of, termination_file
from shoal.agent.kubelet.memory_volumes import mount_if_in_memory
from shoal.agent.kubelet.mounts import unmount_below
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.agent.kubelet.runtime import Launch
from shoal.agent.kubelet.subpaths import SubPath, sub_path_of
from shoal.agent.kubelet.volumes import Tokens, has_content, kind_of, provide, refresh
from shoal.client.kubelet.environment import Surroundings, environment_of, words_of
from shoal.client.kubelet.pod_fields import Addresses

Obj = dict[str, Any]
_OWN_FOLDER = 0o755
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
        paths = await asyncio.to_thread(_volumes, inputs.pod, folder / "volumes", around, inputs.tokens)
        work = folder / "work"
        work.mkdir(parents=True, exist_ok=True)
        root = folder / "mounts" / inputs.name
        named = {one["name"]: paths[one["name"]] for one in spec.get("volumeMounts") or ()}
        given, devices = _given(inputs, work, root, named), self._gpus.environment(inputs.uid, inputs.name)
        around = Surroundings(addresses, inputs.allocatable, inputs.sources, given, devices)
        environment = environment_of(inputs.pod, spec, around)
        await asyncio.to_thread(_link, inputs, root, paths, environment)
        command = (*words_of(spec, "command", environment), *words_of(spec, "args", environment))
        where = Path(spec["workingDir"]) if spec.get("workingDir") else work
        return Launch(command, environment, where, limits_of(spec), spec.get("image", ""))

    async def refresh(self, pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> None:
        await asyncio.to_thread(refresh, pod, folder / "volumes", around, tokens)

    async def end(self, uid: str, folder: Path) -> None:  # noqa: ARG002 - ended processes have nothing else
        await asyncio.to_thread(unmount_below, folder)

    async def remove(self, uid: str, folder: Path) -> None:
        await asyncio.to_thread(unmount_below, folder)
        await self.runtime.remove(uid)


def _volumes(pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> dict[str, Path]:
    """Raises VolumeFault and OSError."""
    for volume in pod["spec"].get("volumes") or ():
        if kind_of(volume) == "emptyDir":
            (folder / volume["name"]).mkdir(parents=True, exist_ok=True)
            mount_if_in_memory(volume, folder / volume["name"], _OWN_FOLDER)
    return provide(pod, folder, around, tokens)


def _given(inputs: LaunchInputs, work: Path, root: Path, volumes: Mapping[str, Path]) -> dict[str, str]:
    message = termination_file(inputs.folder, inputs.name)
    message.unlink(missing_ok=True)
    return {
        **inputs.server,
        "PATH": _PATH,
        "HOME": str(work),
        "HOSTNAME": inputs.pod["spec"].get("hostname") or inputs.pod["metadata"]["name"],
        "SHOAL_MOUNTS": str(root),
        "SHOAL_TERMINATION_LOG": str(message),
        **{f"SHOAL_MOUNT_{_variable(name)}": str(path) for name, path in volumes.items()},
    }


def _link(inputs: LaunchInputs, root: Path, volumes: Mapping[str, Path], environment: Mapping[str, str]) -> None:
    """Make links at the mount paths below `root`. Raises StartRefused."""
    kinds = {one["name"]: has_content(one) for one in inputs.pod["spec"].get("volumes") or ()}
    for at, mount in enumerate(inputs.container.get("volumeMounts") or ()):
        target, sub = volumes[mount["name"]], sub_path_of(mount, environment)
        if sub:
            part = SubPath(target, sub, mount["name"], inputs.name)
            copy = inputs.folder / "subpaths" / inputs.name / str(at)
            target = part.copy_to(copy) if kinds[mount["name"]] else part.place()
        link = root / mount["mountPath"].strip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink() and link.readlink() != target:
            link.unlink()
        if not link.is_symlink():
            link.symlink_to(target)


def _variable(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "_")
