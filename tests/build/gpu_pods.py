"""Builds pods that request GPUs, and device managers of simulated machines by their catalogue names."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.devices.pod_refusal import Refused
from shoal.devices.port import GpuDriver
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.node_gpus import ContainerDevices
from shoal.embedded.machines.fleet_spec import read_fleet

Obj = dict[str, Any]
GPU = "nvidia.com/gpu"


def device_manager(spec: str) -> DeviceManager:
    return DeviceManager(read_fleet(spec)[0])


def watched(driver: GpuDriver) -> HealthWatcher:
    """The GPUs of the driver with their health, as they are now. Once started, it reads nothing by itself."""
    watcher = HealthWatcher(driver, lambda: 0.0, times=HealthTimes(readings_s=3600.0, wait_s=3600.0))
    watcher.read()
    return watcher


def gpu_pod(uid: str, amount: int = 1, resource: str = GPU, **annotations: str) -> Obj:
    return pod_of(uid, [container("main", amount, resource)], annotations=annotations)


def pod_of(
    uid: str, containers: list[Obj], init: list[Obj] | None = None, annotations: dict[str, str] | None = None
) -> Obj:
    spelled = {f"shoal.dev/{name.replace('_', '-')}": value for name, value in (annotations or {}).items()}
    return {
        "metadata": {"name": uid, "namespace": "team", "uid": uid, "annotations": spelled},
        "spec": {"containers": containers, "initContainers": init or []},
    }


def container(name: str, amount: int, resource: str = GPU, **more: Any) -> Obj:
    return {"name": name, "resources": {"limits": {resource: str(amount)}}, **more}


def granted(found: tuple[ContainerDevices, ...] | Refused) -> tuple[ContainerDevices, ...]:
    assert not isinstance(found, Refused), found
    return found


def refused(found: tuple[ContainerDevices, ...] | Refused) -> Refused:
    assert isinstance(found, Refused), found
    return found


def gpus_of(found: tuple[ContainerDevices, ...] | Refused) -> list[int]:
    return [gpu for grant in granted(found) for gpu in grant.gpus]


def config_map(**data: str) -> Obj:
    return {"data": {key.replace("__", "."): text for key, text in data.items()}}


def status_of(found: tuple[ContainerDevices, ...]) -> Obj:
    """A pod's status as the kubelet reports these grants."""
    entries: dict[str, list[Obj]] = {}
    for grant in found:
        resources = [{"resourceID": one, "health": "Healthy"} for one in grant.device_ids]
        entries.setdefault(grant.container, []).append({"name": grant.resource, "resources": resources})
    statuses = [{"name": name, "allocatedResourcesStatus": entry} for name, entry in entries.items()]
    return msgspec.to_builtins({"containerStatuses": statuses})  # type: ignore[no-any-return]
