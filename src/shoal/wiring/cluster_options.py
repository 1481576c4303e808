"""Options of a cluster that the command line can set."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.autoscale.scaled_objects.trigger_addresses import TriggerAddresses
from shoal.embedded.cloud.settings import CloudSettings
from shoal.embedded.machines.machine import Machine
from shoal.embedded.snapshots.creation import SnapshotStart
from shoal.wiring.cluster_clock import ClockReading
from shoal.wiring.run_choice import RunChoice


class ClusterOptions(msgspec.Struct, frozen=True):
    machines: tuple[Machine, ...] = ()
    controllers: tuple[str, ...] = ()
    """Names from the list of controllers."""
    shoal: RunChoice | None = None
    """Shoal's own controllers, in the place of the simple scheduler."""
    speed: float = 1.0
    """Seconds of the cluster in a second of the machine."""
    since: ClockReading | None = None
    """The time from which the speed applies, if another process of the same cluster defines it."""
    stages: tuple[Path, ...] = ()
    metrics_port: int | None = None
    """None: the default port if it is free, otherwise any free port."""
    kubelet_port: int = 0
    kubelet_address: str = ""
    """The address of the kubelets' endpoints, which all nodes report then; empty: loopback, with one address per
    node."""
    has_contention: bool = True
    """Pods that share a GPU slow each other down and share its memory."""
    is_child: bool = False
    """This process is a child of the cluster's server, and ends with it."""
    children: tuple[tuple[str, ...], ...] = ()
    """Commands of child processes that run the clients."""
    has_foreign: bool = True
    """Kinds of other projects are provided, if controllers run beside the server."""
    trigger_addresses: TriggerAddresses = TriggerAddresses()
    """The addresses that triggers of ScaledObjects may ask."""

    snapshot: SnapshotStart | None = None
    """Objects to create at the first start, with the nodes among `machines`."""
    cloud: CloudSettings | None = None
    """The simulated cloud, whose machines are nodes beside `machines`; None: there is none."""
    this_machine: Path | None = None
    """Where the pods of this machine are stored, if it is a node of the cluster."""
    runtime_endpoint: str = ""
    """The socket of this machine's container runtime; empty: that of an installed one; `none`: no container runs."""

    gpu_config: Path | None = None
    """The configuration of the device plugin of this machine."""

    @property
    def is_alone(self) -> bool:
        """No controllers or nodes run beside the server."""
        return not (self.machines or self.cloud or self.controllers or self.shoal or self.children or self.this_machine)
