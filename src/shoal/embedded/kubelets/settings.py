"""Settings of a fleet of simulated nodes beyond its machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.embedded.gpus.node_gpus import NodeGpus
from shoal.embedded.machines.machine import Machine


class FleetSettings(msgspec.Struct, frozen=True):
    lease_every_s: float = 10.0
    """A kubelet's default; 40 suits large fleets."""
    status_every_s: float = 300.0
    pull_s: float = 0.2
    """How long an image takes, whatever its name."""
    reboot_s: float = 45.0
    spot_notice_s: float = 120.0
    has_events: bool = True
    kubelet_address: str = ""
    """Where the nodes' doors are, if anywhere: all nodes' InternalIP then. Else each has one of its own."""
    kubelet_port: int = 10250
    writers: int = 16
    """Writes under way at once."""
    stage_folders: tuple[Path, ...] = ()
    gpus: Callable[[Machine], NodeGpus] | None = None
    """What keeps a node's GPUs; None is `gpus.book.DeviceManager`."""
