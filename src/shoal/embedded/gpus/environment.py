"""Computes the environment variables that the device plugin adds to a container."""

from __future__ import annotations

from shoal.embedded.gpus.allocation import HeldDevices


def environment(held: HeldDevices, sharing: str) -> dict[str, str]:
    """Two replicas of one GPU are one device for the container."""
    found = {"NVIDIA_VISIBLE_DEVICES": ",".join(dict.fromkeys(device.physical for device in held.devices))}
    if sharing == "mps" and any(device.replicas > 1 for device in held.devices):
        found["CUDA_MPS_PIPE_DIRECTORY"] = f"/mps/{held.resource}/pipe"
    return found
