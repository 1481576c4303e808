"""Prepares the containers of pods: the sandbox, the image, the volumes, the environment and the devices."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from shoal.agent.kubelet.container_settings import (
    ContainerDevice,
    ContainerMount,
    ContainerSettings,
    SecurityOptions,
    pod_settings,
    security_of,
)
from shoal.agent.kubelet.cri.container_volumes import access_of, provide_for_containers
from shoal.agent.kubelet.cri.gpu_access import GpuAccess
from shoal.agent.kubelet.cri.images import Images
from shoal.agent.kubelet.cri.registry_logins import logins_in
from shoal.agent.kubelet.cri.runtime import CriRuntime
from shoal.agent.kubelet.launches import LaunchInputs, limits_of, termination_file
from shoal.agent.kubelet.mounts import unmount_below
from shoal.agent.kubelet.runtime import Launch, StartRefused
from shoal.agent.kubelet.subpaths import SubPath, sub_path_of
from shoal.agent.kubelet.volumes import Tokens, refresh
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.kubelet.environment import Surroundings, environment_of, words_of
from shoal.client.kubelet.pod_fields import Addresses

Obj = dict[str, Any]
_TERMINATION_LOG = "/dev/termination-log"


class ContainerLauncher:
    """Implements Launcher."""

    def __init__(self, runtime: CriRuntime, images: Images, gpus: GpuAccess) -> None:
        self.runtime = runtime
        self._images, self._gpus = images, gpus

    async def launch(self, inputs: LaunchInputs) -> Launch:
        pod, spec = inputs.pod, inputs.container
        settings = pod_settings(pod, await inputs.handler())
        try:
            sandbox = await self.runtime.sandboxes.ready(settings)
        except StartRefused as refused:
            inputs.tell("FailedCreatePodSandBox", refused.message, warns=True)
            raise StartRefused(refused.reason, refused.message, is_told=True) from None
        addresses = Addresses(sandbox.address or inputs.node_address, inputs.node_address)
        logins = [one for secret in inputs.pull_secrets() for one in logins_in(secret)]
        policy, tell = spec.get("imagePullPolicy") or "IfNotPresent", partial(inputs.tell, container=inputs.name)
        image = await self._images.provide(spec["image"], policy, logins, tell)
        security = security_of(pod, spec)
        _check_user(security, image, inputs.name)
        access = await asyncio.to_thread(self._gpus.of, inputs.uid, inputs.name)
        devices = {} if security.is_privileged else access.environment
        given = {**inputs.server, **access.environment}
        around = Surroundings(addresses, inputs.allocatable, inputs.sources, given, devices)
        volumes = await asyncio.to_thread(provide_for_containers, pod, inputs.folder / "volumes", around, inputs.tokens)
        environment = environment_of(pod, spec, around)
        mounts = await asyncio.to_thread(_mounts, inputs, volumes, environment)
        return Launch(
            command=words_of(spec, "command", environment),
            environment=environment,
            folder=Path(spec["workingDir"]) if spec.get("workingDir") else None,
            limits=limits_of(spec),
            image=spec["image"],
            address=addresses.pod,
            container=ContainerSettings(
                pod=settings,
                image_id=next(iter(image.repo_digests), image.id),
                args=words_of(spec, "args", environment),
                mounts=(*mounts, *access.mounts),
                devices=tuple(ContainerDevice(one.path, one.host_path or one.path) for one in access.nodes),
                cdi_devices=access.cdi,
                security=security,
                has_stdin=bool(spec.get("stdin")),
                has_stdin_once=bool(spec.get("stdinOnce")),
                has_terminal=bool(spec.get("tty")),
            ),
        )

    async def refresh(self, pod: Obj, folder: Path, around: Surroundings, tokens: Tokens) -> None:
        await asyncio.to_thread(refresh, pod, folder / "volumes", around, tokens, access_of(pod))

    async def end(self, uid: str, folder: Path) -> None:
        await self.runtime.sandboxes.stop(uid)
        await asyncio.to_thread(unmount_below, folder)

    async def remove(self, uid: str, folder: Path) -> None:
        await self.runtime.remove(uid)
        await asyncio.to_thread(unmount_below, folder)


def _mounts(
    inputs: LaunchInputs, volumes: Mapping[str, Path], environment: Mapping[str, str]
) -> Sequence[ContainerMount]:
    """Raises StartRefused."""
    found = []
    for at, mount in enumerate(inputs.container.get("volumeMounts") or ()):
        path, sub = volumes[mount["name"]], sub_path_of(mount, environment)
        if sub:
            part = SubPath(path, sub, mount["name"], inputs.name)
            path = part.bind_at(inputs.folder / "subpaths" / inputs.name / str(at))
        propagation = mount.get("mountPropagation") or "None"
        found.append(ContainerMount(mount["mountPath"], path, bool(mount.get("readOnly")), propagation))
    message = termination_file(inputs.folder, inputs.name)
    message.unlink(missing_ok=True)
    message.touch()
    # The user of the container may write to it.
    message.chmod(0o666)
    found.append(ContainerMount(inputs.container.get("terminationMessagePath") or _TERMINATION_LOG, message))
    return found


def _check_user(security: SecurityOptions, image: messages.Image, container: str) -> None:
    if not security.is_never_root:
        return
    if security.user == 0:
        raise StartRefused("CreateContainerConfigError", "container's runAsUser breaks non-root policy")
    if security.user is not None:
        return
    if image.username:
        words = f"container has runAsNonRoot and image has non-numeric user ({image.username}), cannot verify user is "
        words += "non-root"
        raise StartRefused("CreateContainerConfigError", f"{words} (container: {container})")
    if not image.HasField("uid") or image.uid.value == 0:
        words = "container has runAsNonRoot and image will run as root"
        raise StartRefused("CreateContainerConfigError", f"{words} (container: {container})")
