"""Limits the number of MPS clients of a GPU, as the device plugin does."""

from __future__ import annotations

from shoal.data.gpus import Model
from shoal.devices.plugin_resources import PluginConfigError

MOST_MPS_CLIENTS, MOST_OLD_MPS_CLIENTS = 48, 16
_NEW = (7, 5)


def most_mps_clients(model: Model) -> int:
    """Of one GPU of this model."""
    return most_clients_of(model.compute_capability)


def most_clients_of(compute_capability: str) -> int:
    """The plugin takes GPUs below compute capability 7.5 for old ones, and those of which it is not known."""
    major, _, minor = compute_capability.partition(".")
    if not major.isdecimal() or (minor and not minor.isdecimal()):
        return MOST_OLD_MPS_CLIENTS
    return MOST_MPS_CLIENTS if (int(major), int(minor or 0)) >= _NEW else MOST_OLD_MPS_CLIENTS


def check_mps_clients(replicas: int, most: int, resource: str) -> None:
    """Raises `PluginConfigError` if a GPU cannot have so many clients."""
    if replicas > most:
        what = f"maximum allowed replicas exceeded: {replicas} > {most}: {resource}"
        raise PluginConfigError(what, "mps-clients")
