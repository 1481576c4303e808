"""Who lives beside a server: everything about them that a command line can choose."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.embedded.machines.machine import Machine
from shoal.wiring.cluster_clock import Moment
from shoal.wiring.run_choice import RunChoice


class ClusterOptions(msgspec.Struct, frozen=True):
    machines: tuple[Machine, ...] = ()
    controllers: tuple[str, ...] = ()
    """Names from the list of controllers."""
    shoal: RunChoice | None = None
    """Shoal's own controllers, in the place of the simple scheduler."""
    speed: float = 1.0
    """Seconds of the cluster in a second of the machine."""
    since: Moment | None = None
    """From when on at that speed, where another process of the same cluster says so."""
    stages: tuple[Path, ...] = ()
    metrics_port: int | None = None
    """None: the usual one if it is free, else any."""
    kubelet_port: int = 0
    kubelet_address: str = ""
    """Where the kubelets' doors are, and what all nodes call their own then; empty: loopback, and each has its own."""
    has_contention: bool = True
    """Pods that share a GPU slow each other down, and find its memory taken."""
    is_child: bool = False
    """This is a process of a cluster whose server is its parent, and ends with it."""
    children: tuple[tuple[str, ...], ...] = ()
    """Commands that do the clients' part in processes of their own."""
    has_foreign: bool = True
    """Kinds of other projects are provided, if controllers run beside the server."""

    @property
    def is_alone(self) -> bool:
        """No controllers or nodes run beside the server."""
        return not (self.machines or self.controllers or self.shoal or self.children)
