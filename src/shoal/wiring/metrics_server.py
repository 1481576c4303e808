"""Opens the metrics endpoint of `shoal run`, before anything else, so that probes are answered.

A chosen address must be free. If another process uses the default port, any free port is used, and the line that says
that the process is ready names it.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.client.lease_lock import Lock
from shoal.client.recorder import Recorder
from shoal.telemetry.metrics_endpoint import MetricsEndpointSettings
from shoal.telemetry.queues import Role
from shoal.telemetry.traces import spans_of
from shoal.units.errors import UserError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.telemetry import Measured, Telemetry, metrics_endpoint_settings


def telemetry_of(choice: RunChoice, lock: Lock, clock: Clock, events: Recorder) -> Telemetry:
    rules = choice.own.leader_election
    about: Obj = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": lock.name, "namespace": lock.namespace},
    }
    role: Role = "leader" if rules.leader_elect else "standalone"
    measured = Measured(rules.resource_name, role, choice.own.scheduler_names[0])
    return Telemetry(_version(), clock, measured, events, about, spans_of(os.environ))


def telemetry_beside(choice: RunChoice, clock: Clock) -> Telemetry:
    """Telemetry of a process with an embedded cluster, whose endpoint serves the metrics."""
    return Telemetry(_version(), clock, Measured(scheduler=choice.own.scheduler_names[0]))


async def open_metrics(telemetry: Telemetry, tasks: ProcessTasks, choice: RunChoice) -> str:
    """The URL of the metrics; empty if they are switched off."""
    settings = MetricsEndpointSettings() if choice.metrics is None else metrics_endpoint_settings(choice.metrics)
    if settings is None:
        return ""
    try:
        return await telemetry.open(tasks, settings)
    except UserError:
        if choice.metrics is not None:
            raise
        return await telemetry.open(tasks, MetricsEndpointSettings(port=0))


def _version() -> str:
    try:
        return version("shoal")
    except PackageNotFoundError:
        return "0"
