"""What `shoal run` does on a cluster: everything that its command line and its files can choose."""

from __future__ import annotations

import msgspec

from shoal.api.kueue import Configuration
from shoal.api.run_configuration import RunConfiguration
from shoal.engine.profile import Builder
from shoal.engine.round import Step
from shoal.wiring.pace import Moment

SCHEDULER, QUEUES, VOLCANO, KAI = "scheduler", "queues", "volcano", "kai"


class RunChoice(msgspec.Struct, frozen=True):
    own: RunConfiguration
    builder: Builder
    """Of the policy by which pods are placed."""
    steps: tuple[Step, ...]
    controllers: tuple[str, ...]
    kueue: Configuration | None = None
    """Of the queues; None: what the cluster's ConfigMap says."""
    identity: str = ""
    """By which it is told from others who want to lead."""
    speed: float = 1.0
    since: Moment | None = None
    is_child: bool = False
    metrics: str | None = None
    """Where figures are read, `none`, or None for the usual place."""
