"""What `shoal run` does on a cluster: everything that its command line and its files can choose."""

from __future__ import annotations

import msgspec

from shoal.api.kueue import Configuration
from shoal.api.node_affinity import NodeAffinity
from shoal.api.run_configuration import RunConfiguration
from shoal.engine.cycle_state import Step
from shoal.engine.profile import Builder
from shoal.wiring.cluster_clock import Moment

SCHEDULER, QUEUES, VOLCANO, KAI = "scheduler", "queues", "volcano", "kai"
SCHEDULER_OF = {VOLCANO: "volcano", KAI: "kai-scheduler"}
"""The scheduler names of other projects whose pods a part schedules while the project does not run."""
OWN_NAMES = ("shoal", "default-scheduler", *SCHEDULER_OF.values())
"""The scheduler names whose pods Shoal places in an embedded cluster."""


class NamedProfile(msgspec.Struct, frozen=True):
    """How the pods of one scheduler name are placed."""

    scheduler_name: str
    builder: Builder
    added: NodeAffinity | None = None
    """Affinity that all of its pods have besides their own."""


class RunChoice(msgspec.Struct, frozen=True):
    own: RunConfiguration
    builder: Builder
    """Of the policy by which pods are placed that have no profile of their own."""
    steps: tuple[Step, ...]
    controllers: tuple[str, ...]
    kueue: Configuration | None = None
    """Of the queues; None: what the cluster's ConfigMap says."""
    identity: str = ""
    """The identity of this process in the Lease."""
    speed: float = 1.0
    since: Moment | None = None
    is_child: bool = False
    metrics: str | None = None
    """Where figures are read, `none`, or None for the usual place."""
    profiles: tuple[NamedProfile, ...] = ()
    """Of scheduler names that have their own; the first is built by `builder`, and others go by it as well."""

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """Whose pods are placed."""
        ours = (name for part, name in SCHEDULER_OF.items() if part in self.controllers)
        return tuple(dict.fromkeys((*self.own.scheduler_names, *ours)))
