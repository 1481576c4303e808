"""Represents a node during an upgrade of its driver: its state, its driver pod and its workloads.

The environment fills these values from the Node, the pods on it and the revisions of the driver's DaemonSet.
"""

from __future__ import annotations

import msgspec

from shoal.operator.upgrades.states import SKIP_LABEL, UpgradeState

_MOST_RESTARTS = 10


class DriverContainer(msgspec.Struct, frozen=True):
    is_ready: bool = True
    restarts: int = 0

    @property
    def is_failing(self) -> bool:
        return not self.is_ready and self.restarts > _MOST_RESTARTS


class DriverPod(msgspec.Struct, frozen=True):
    """The pod that loads the driver on a node."""

    has_current_revision: bool
    """Its revision equals the one of its DaemonSet."""
    is_orphaned: bool = False
    """It has no owner."""
    phase: str = "Running"
    containers: tuple[DriverContainer, ...] = ()
    init_containers: tuple[DriverContainer, ...] = ()
    is_terminating: bool = False

    @property
    def is_current(self) -> bool:
        """An orphaned pod has no revision to compare with."""
        return self.has_current_revision and not self.is_orphaned

    @property
    def runs_current_driver(self) -> bool:
        has_ready_containers = bool(self.containers) and all(one.is_ready for one in self.containers)
        return self.is_current and self.phase == "Running" and has_ready_containers

    @property
    def is_failing(self) -> bool:
        return any(one.is_failing for one in (*self.init_containers, *self.containers))


class WorkloadPod(msgspec.Struct, frozen=True):
    """A pod on the node other than the driver pod."""

    name: str
    labels: dict[str, str] = {}
    phase: str = "Running"
    has_ready_containers: bool = False
    """It has containers, and all of them are ready."""

    @property
    def is_active(self) -> bool:
        return self.phase in ("Pending", "Running")

    @property
    def is_ready(self) -> bool:
        return self.phase == "Running" and self.has_ready_containers


class UpgradeNode(msgspec.Struct, frozen=True):
    name: str
    state: str = UpgradeState.UNKNOWN
    """The value of the state label."""
    is_unschedulable: bool = False
    is_ready: bool = True
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    driver_pod: DriverPod | None = None
    """None: it was deleted and is not created yet, or the node never had one."""
    pods: tuple[WorkloadPod, ...] = ()

    @property
    def is_unavailable(self) -> bool:
        return self.is_unschedulable or not self.is_ready

    @property
    def is_skipped(self) -> bool:
        return self.labels.get(SKIP_LABEL) == "true"

    @property
    def is_managed(self) -> bool:
        """A node without a driver pod is none of this operator's, unless its upgrade has begun."""
        return self.driver_pod is not None or self.state != UpgradeState.UNKNOWN
