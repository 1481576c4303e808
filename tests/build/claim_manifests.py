"""Manifests of devices that drivers publish, and of the claims of pods."""

from __future__ import annotations

from typing import Any

from build.manifests import Object, pod, thing

VERSION = "resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"


def gpu_slice(name: str, count: int, product: str = "H100") -> Object:
    devices = [{"name": f"gpu-{at}", "attributes": {"productName": {"string": product}}} for at in range(count)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return thing(VERSION, "ResourceSlice", f"{name}-slice", spec=spec)


def device_class(name: str = DRIVER) -> Object:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    return thing(VERSION, "DeviceClass", name, spec={"selectors": selectors})


def claim(name: str, count: int = 1, expression: str = "", class_name: str = DRIVER) -> Object:
    wanted: dict[str, Any] = {"deviceClassName": class_name, "count": count}
    if expression:
        wanted["selectors"] = [{"cel": {"expression": expression}}]
    requests = [{"name": "gpu", "exactly": wanted}]
    return thing(VERSION, "ResourceClaim", name, spec={"devices": {"requests": requests}})


def allocated(claim: Object, *devices: str, pool: str = "n", pod: str = "") -> Object:
    """`claim`, with these devices of the pool; `pod`: the name of the pod that they are reserved for."""
    results = [{"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} for device in devices]
    claim["status"] = {"allocation": {"devices": {"results": results}}}
    if pod:
        claim["status"]["reservedFor"] = [{"resource": "pods", "name": pod, "uid": f"uid-{pod}"}]
    return claim


def claimer(name: str, claim_name: str, on: str = "") -> Object:
    return pod(name, on=on, resourceClaims=[{"name": "gpu", "resourceClaimName": claim_name}])
