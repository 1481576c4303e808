"""Composes the controller that applies the MIG layout of a Node's label to the GPUs of this machine."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.agent.mig.label_controller import MigLabelController, MigSettings
from shoal.agent.mig.layout_change import NodeMig
from shoal.devices.mig_config import MigConfigError, parse_mig_config
from shoal.devices.mig_layouts import Specs
from shoal.wiring.gpu_driver import open_mig

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
    fake: str = ""
    may_reboot: bool = False


def mig_controller(api: Api, clock: Clock, mig: NodeMig, following: MigFollowing) -> MigLabelController:
    """Its `run` follows the Node until it is cancelled."""
    file = following.file
    settings = MigSettings(
        node=following.node,
        namespace=following.namespace,
        configs=None if file is None else lambda: layouts_of_file(file),
        reboot=_reboot if following.may_reboot else None,
    )
    return MigLabelController(api, clock, mig, settings)


def follow_mig_label(following: MigFollowing) -> None:
    """Until SIGINT or SIGTERM."""
    asyncio.run(_follow(following))


async def _follow(following: MigFollowing) -> None:
    from shoal.client.clock import WallClock
    from shoal.client.http.api import KubeApi
    from shoal.client.http.settings import KubeSettings

    driver, control = open_mig(following.fake)
    api = KubeApi(following.access, random.Random(), KubeSettings(manager=_MANAGER, timeout_s=20.0))
    try:
        controller = mig_controller(api, WallClock(), NodeMig(driver, control), following)
        task = asyncio.ensure_future(controller.run())
        for name in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(name, task.cancel)
        await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled():
            task.result()
    finally:
        driver.close()
        await api.close()


def layouts_of_file(file: Path) -> Mapping[str, Specs]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MigConfigError(f"{file} cannot be read: {error}") from error
    return parse_mig_config(text)


def _reboot() -> None:
    subprocess.run(_REBOOT, check=True, timeout=60.0)  # noqa: S603 - a fixed command
