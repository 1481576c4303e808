"""Device classes, slices and claims of a case: Kubernetes objects first, then what everybody's claims become."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.api.claims import ResourceClaim
from shoal.api.device_classes import DeviceClass
from shoal.api.groups.kai import QUEUE_LABEL
from shoal.api.slices import ResourceSlice
from shoal.api.wire import dec_hook
from shoal.engine.events import Event
from shoal.store.dra import dra_of

from .case import Case, Task


def claim_events(case: Case) -> Iterator[Event]:
    """Devices, sets and claims; nothing where the case has none."""
    if not case.dra:
        return
    slices = [_typed(_slice(each), ResourceSlice) for each in case.dra.get("resourceSlices", [])]
    classes = [_typed(_class(name), DeviceClass) for name in case.dra.get("deviceClasses", [])]
    claims = [_typed(_claim(case.dra, each), ResourceClaim) for each in case.dra.get("resourceClaims", [])]
    yield from dra_of(slices, classes, claims, (), ()).events


def pod_claims(task: Task) -> list[dict[str, str]]:
    return [{"name": name, "resourceClaimName": name} for name in task.resource_claims]


def claimed_gpus(case: Case, namespace: str, task: Task) -> int:
    """GPUs that the task's claims are for: those of GPU classes count against quotas."""
    claims = {
        (each.get("namespace", "default"), each["name"]): each for each in (case.dra or {}).get("resourceClaims", [])
    }
    mine = [claims.get((namespace, name)) for name in task.resource_claims]
    return sum(int(each.get("count", 1)) for each in mine if each is not None and each["deviceClass"].endswith("/gpu"))


def _typed(value: dict[str, Any], wanted: Any) -> Any:
    return msgspec.convert(value, wanted, dec_hook=dec_hook)


def _driver(class_name: str) -> str:
    """The cases know no drivers: every class has one of its own."""
    return class_name.replace("/", ".")


def _class(name: str) -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{_driver(name)}"'}}
    return {"metadata": {"name": name}, "spec": {"selectors": [selector]}}


def _slice(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": given["name"]},
        "spec": {
            "driver": _driver(given["deviceClass"]),
            "nodeName": given["node"],
            "pool": {"name": given["name"], "resourceSliceCount": 1},
            "devices": [{"name": f"device-{number}"} for number in range(given["count"])],
        },
    }


def _claim(dra: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    class_name = given["deviceClass"]
    exactly: dict[str, Any] = {"deviceClassName": class_name}
    if given.get("count"):
        exactly["count"] = given["count"]
    else:
        exactly["allocationMode"] = "All"
    claim = {
        "metadata": {
            "name": given["name"],
            "namespace": given.get("namespace", "default"),
            "labels": {QUEUE_LABEL if key == "queue" else key: value for key, value in given.get("labels", {}).items()},
        },
        "spec": {"devices": {"requests": [{"name": "request", "exactly": exactly}]}},
    }
    users = given.get("reservedForCount", 0)
    if users:
        names = [
            (each["name"], f"device-{number}")
            for each in dra.get("resourceSlices", [])
            if each["deviceClass"] == class_name
            for number in range(each["count"])
        ]
        driver = _driver(class_name)
        claim["status"] = {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "request", "driver": driver, "pool": pool, "device": device}
                        for pool, device in names[: given.get("count", 1)]
                    ]
                }
            },
            "reservedFor": [{"resource": "pods", "name": f"other-{number}"} for number in range(users)],
        }
    return claim
