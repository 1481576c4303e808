"""The DeviceClasses of NVIDIA's driver for resource claims: `gpu.nvidia.com` and `mig.nvidia.com`."""

from __future__ import annotations

from typing import Any

from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.names import GPU

Obj = dict[str, Any]
MIG_CLASS = "mig.nvidia.com"


def device_classes() -> tuple[Obj, ...]:
    """Pods that request `nvidia.com/gpu` get a device of the first class where no device plugin has the resource."""
    whole = _class(CLAIM_DRIVER, "gpu")
    whole["spec"]["extendedResourceName"] = GPU
    return whole, _class(MIG_CLASS, "mig")


def _class(name: str, type_: str) -> Obj:
    driver = f"device.driver == '{CLAIM_DRIVER}'"
    expression = f"{driver} && device.attributes['{CLAIM_DRIVER}'].type == '{type_}'"
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
