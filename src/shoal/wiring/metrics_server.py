"""The metrics of a `shoal run` and their endpoint, which is opened first so that probes are answered.

An address that was asked for has to be had. The usual one may be another process's: then any free one will do, and the
line that says the process is ready says which.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.client.lease_lock import Lock
from shoal.client.recorder import Recorder
from shoal.telemetry.metrics_endpoint import MetricsEndpointSettings
from shoal.telemetry.queues import Role
from shoal.units.errors import UserError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.run_choice import RunChoice
from shoal.wiring.telemetry import Measured, Telemetry, door_settings


def telemetry_of(choice: RunChoice, lock: Lock, clock: Clock, events: Recorder) -> Telemetry:
    rules = choice.own.leader_election
    about: Obj = {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "metadata": {"name": lock.name, "namespace": lock.namespace},
    }
    role: Role = "leader" if rules.leader_elect else "standalone"
    measured = Measured(rules.resource_name, role, choice.own.scheduler_names[0])
    return Telemetry(_version(), clock, measured, events, about)


def telemetry_beside(choice: RunChoice, clock: Clock) -> Telemetry:
    """Of a process that is more than Shoal, and shows its figures elsewhere."""
    return Telemetry(_version(), clock, Measured(scheduler=choice.own.scheduler_names[0]))


async def open_door(telemetry: Telemetry, life: ProcessTasks, choice: RunChoice) -> str:
    """Where figures are; empty where none are wanted."""
    settings = MetricsEndpointSettings() if choice.metrics is None else door_settings(choice.metrics)
    if settings is None:
        return ""
    try:
        return await telemetry.open(life, settings)
    except UserError:
        if choice.metrics is not None:
            raise
        return await telemetry.open(life, MetricsEndpointSettings(port=0))


def _version() -> str:
    try:
        return version("shoal")
    except PackageNotFoundError:
        return "0"
