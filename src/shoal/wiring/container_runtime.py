"""Opens the container runtime of this machine for `shoal up --this-machine`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

import msgspec

from shoal.agent.cdi.driver_files import mig_capabilities
from shoal.agent.kubelet.cri.calls import CallFailedError, Deadlines, RuntimeCalls
from shoal.agent.kubelet.cri.endpoint import runtime_socket
from shoal.agent.kubelet.cri.gpu_access import CdiFolder, GpuAccess
from shoal.agent.kubelet.cri.image_collection import ImageCollection
from shoal.agent.kubelet.cri.images import Images
from shoal.agent.kubelet.cri.launcher import ContainerLauncher
from shoal.agent.kubelet.cri.runtime import CriRuntime, Owner
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.kubelet import Kubelet
from shoal.agent.kubelet.launches import Launcher
from shoal.client.informers import Informers
from shoal.client.kind import PODS
from shoal.devices.port import GpuDriver
from shoal.units.errors import TemporaryError, UserError
from shoal.wiring.process_tasks import ProcessTasks

_log = logging.getLogger("shoal.this-machine")
_CDI_FOLDER = Path("/var/run/cdi")
_CRI_O, _CDI_SINCE = "cri-o", 2
"""containerd reads CDI specifications since this version without being configured for it."""
_PATIENCE_S = 10.0


class Containers(msgspec.Struct):
    """The container runtime of this machine."""

    launcher: Launcher
    version: str = ""
    """`containerd://1.6.20`; empty if containers cannot run."""
    refusal: str = ""
    """Why containers cannot run; empty if they can."""
    problem: Callable[[], str] = lambda: ""
    """Why the runtime does not answer at present; empty while it does."""
    follow: Callable[[Callable[[], None]], None] = lambda _: None
    """Sets what is called when `problem` has changed."""
    remove_others: Callable[[Callable[[str], bool]], Awaitable[None]] | None = None
    """Removes the pods of which it is not known that they are wanted. Raises TemporaryError."""
    images: ImageCollection | None = None


def chosen_socket(endpoint: str, recorded: Path, pod: str) -> tuple[Path, str]:
    """The socket of the runtime, and why it cannot be used. `recorded`: the file with the socket of the pods that are
    stored; `pod`: one of those that run in containers; empty: none does. With another runtime such pods would run
    twice. Raises UserError."""
    former = recorded.read_text(encoding="utf-8").strip() if pod and recorded.exists() else ""
    if former and not endpoint:
        return Path(former), ""
    socket, refusal = runtime_socket(endpoint)
    if former and (refusal or str(socket.absolute()) != former):
        raise UserError(
            f"{pod} runs in a container at {former}",
            fix=f"start with --runtime-endpoint {former}, and delete such pods before you choose another runtime",
        )
    if not refusal:
        recorded.write_text(str(socket.absolute()), encoding="utf-8")
    return socket, refusal


async def open_containers(
    tasks: ProcessTasks, chosen: tuple[Path, str], folder: Path, driver: Callable[[], GpuDriver | None], gpus: NodeGpus
) -> Containers:
    """`chosen`: the socket, and why it cannot be used; `folder`: has a folder for each pod."""
    socket, refusal = chosen
    calls = RuntimeCalls(socket)
    name, version = "containerd", ""
    if not refusal:
        probe = RuntimeCalls(socket, Deadlines(query_s=_PATIENCE_S))
        try:
            said = await probe.version()
            name, version = said.runtime_name, said.runtime_version.lstrip("v")
        except CallFailedError as error:
            if error.code == "Unimplemented":
                refusal = (
                    f"{socket} does not serve containers for a kubelet; remove cri from disabled_plugins in "
                    "containerd's configuration and restart it"
                )
            else:
                _log.warning("the container runtime at %s does not answer yet: %s", socket, error)
        finally:
            await probe.close()
    owner = Owner(sha256(str(folder).encode()).hexdigest()[:16], folder)
    runtime = CriRuntime(calls, owner, tasks.clock, name)
    tasks.at_end(runtime.close)
    cdi = CdiFolder(_CDI_FOLDER if _reads_cdi(name, version) else None)
    access = GpuAccess(driver, gpus, cdi, mig_capabilities)
    launcher = ContainerLauncher(runtime, Images(calls, tasks.clock), access)

    def follow(changed: Callable[[], None]) -> None:
        runtime.ends.on_change = changed

    if not refusal:
        _log.info("containers run by %s %s at %s", name, version, socket)
    return Containers(
        launcher,
        "" if refusal else f"{name}://{version}",
        refusal,
        lambda: runtime.ends.problem,
        follow,
        runtime.sandboxes.remove_others,
        None if refusal else ImageCollection(calls, tasks.clock),
    )


async def remove_unknown_pods(containers: Containers, kubelet: Kubelet, informers: Informers) -> None:
    """Once: pods of an earlier cluster of the same state folder, of which neither the kubelet nor the cluster knows."""
    if containers.remove_others is None or containers.refusal:
        return None
    await kubelet.has_taken_over.wait()

    def is_known(uid: str) -> bool:
        return kubelet.by_uid(uid) is not None or any(item.uid == uid for item in informers.of(PODS))

    while True:
        try:
            return await containers.remove_others(is_known)
        except TemporaryError as error:
            await asyncio.sleep(error.delay_s)


def _reads_cdi(name: str, version: str) -> bool:
    major = version.partition(".")[0]
    return name == _CRI_O or (major.isdecimal() and int(major) >= _CDI_SINCE)
