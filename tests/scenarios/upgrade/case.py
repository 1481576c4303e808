"""A case about driver upgrades as it is in the files, without its expectation."""

from __future__ import annotations

from typing import Any

import msgspec


class ContainerLine(msgspec.Struct):
    ready: bool = True
    restarts: int = 0


class DriverPodLine(msgspec.Struct, rename="camel"):
    up_to_date: bool
    orphaned: bool = False
    phase: str = "Running"
    containers: list[ContainerLine] = []
    init_containers: list[ContainerLine] = []
    terminating: bool = False


class WorkloadPodLine(msgspec.Struct, rename="camel"):
    name: str = ""
    labels: dict[str, str] = {}
    phase: str = "Running"
    containers_ready: bool = False


class NodeLine(msgspec.Struct, rename="camel"):
    name: str
    state: str = ""
    unschedulable: bool = False
    ready: bool = True
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    driver_pod: DriverPodLine | None = None
    workload_pods: list[WorkloadPodLine] = []


class OptionsLine(msgspec.Struct, frozen=True, rename="camel"):
    pod_deletion_enabled: bool = False
    validation_enabled: bool = False


class Case(msgspec.Struct, rename="camel"):
    id: str
    now: int = 0
    options: OptionsLine = OptionsLine()
    policy: dict[str, Any] | None = None
    nodes: list[NodeLine] = []
