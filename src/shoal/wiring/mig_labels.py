"""Composes the controller that applies the MIG layout of a Node's label to the GPUs of this machine."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.agent.kubelet.pod_resources import USUAL_SOCKET, KubeletPodDevices
from shoal.agent.mig.held_devices import claimed_devices
from shoal.agent.mig.label_controller import MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.agent.parts import Stop, async_part, run_parts
from shoal.devices.mig_config import MigConfigError, parse_mig_config
from shoal.devices.mig_layouts import Specs
from shoal.devices.port import GpuDriver
from shoal.wiring.gpu_driver import open_mig_patiently

if TYPE_CHECKING:
    from shoal.client.clock import Clock
    from shoal.client.http.access import Access
    from shoal.client.port import Api

_REBOOT = ("systemctl", "reboot")
_MANAGER = "shoal-agent"


class MigFollowing(msgspec.Struct, frozen=True):
    access: Access
    node: str
    namespace: str
    """Of the GPU clients."""
    file: Path | None = None
    """The layouts; read again for each change. None: those that are generated for the GPUs."""
    pod_resources: Path = USUAL_SOCKET
    """The kubelet's socket that names the devices in claims of pods."""
    fake: str = ""
    may_reboot: bool = False


def mig_controller(
    api: Api, clock: Clock, driver: GpuDriver, mig: NodeMig, following: MigFollowing
) -> MigLabelController:
    """Its `run` follows the Node until it is cancelled."""
    file, kubelet = following.file, KubeletPodDevices(following.pod_resources)
    settings = MigSettings(
        node=following.node,
        namespace=following.namespace,
        configs=None if file is None else lambda: layouts_of_file(file),
        reboot=_reboot if following.may_reboot else None,
        claimed=lambda: claimed_devices(kubelet.holdings(), driver.gpus().gpus, following.node),
    )
    return MigLabelController(api, clock, mig, settings)


def follow_mig_label(following: MigFollowing, stop: Stop) -> Sequence[str]:
    """Until `stop` is set; returns the parts that are still blocked in the driver then."""
    driver, control = open_mig_patiently(following.fake)

    async def work() -> None:
        from shoal.client.clock import WallClock
        from shoal.client.http.api import KubeApi
        from shoal.client.http.settings import KubeSettings

        api = KubeApi(following.access, random.Random(), KubeSettings(manager=_MANAGER, timeout_s=20.0))
        try:
            await mig_controller(api, WallClock(), driver, NodeMig(driver, control), following).run()
        finally:
            await api.close()

    try:
        return run_parts([async_part("MIG layout", work)], stop)
    finally:
        driver.close()


def layouts_of_file(file: Path) -> Mapping[str, Specs]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MigConfigError(f"{file} cannot be read: {error}") from error
    return parse_mig_config(text)


def _reboot() -> None:
    subprocess.run(_REBOOT, check=True, timeout=60.0)  # noqa: S603 - a fixed command
