"""The settings of a fleet of simulated nodes, apart from its machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.embedded.gpus.node_gpus import NodeGpus
from shoal.embedded.machines.machine import Machine


class FleetSettings(msgspec.Struct, frozen=True):
    lease_every_s: float = 10.0
    """The interval of lease renewals. The default is the kubelet's; 40 is suitable for large fleets."""
    status_every_s: float = 300.0
    pull_s: float = 0.2
    """The time to pull any image."""
    reboot_s: float = 45.0
    spot_notice_s: float = 120.0
    has_events: bool = True
    kubelet_address: str = ""
    """The address of the endpoint, which becomes the InternalIP of all nodes. Without an endpoint, each node has its
    own address.
    """
    kubelet_port: int = 10250
    writers: int = 16
    """The maximum number of concurrent writes."""
    stage_folders: tuple[Path, ...] = ()
    gpus: Callable[[Machine], NodeGpus] | None = None
    """Creates the GPU model of a node; None: `DeviceManager`."""
