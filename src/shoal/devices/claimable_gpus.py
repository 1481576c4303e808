"""Finds the GPU behind a device of a resource pool by its name, as NVIDIA's driver for resource claims writes it.

The pool of a node has the node's name, and its devices are `gpu-MINOR` and `gpu-MINOR-mig-PROFILE-ID-START`. So pods
with claims are named without a request to the API server.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from shoal.devices.dcgm_holders import ClaimedMig, PoolDevice
from shoal.devices.port import InstalledGpu, MigInstance

_DEVICE = re.compile(r"gpu-(?P<minor>[0-9]+)(?:-mig-(?P<profile>[0-9a-z]+)-[0-9]+-(?P<start>[0-9]+))?")


class PoolOfNode:
    def __init__(self, name: str, gpus: Sequence[InstalledGpu]) -> None:
        self._name = name
        self._gpus = {gpu.index if gpu.minor is None else gpu.minor: gpu for gpu in gpus}

    def find(self, pool: str, device: str) -> PoolDevice | None:
        """None for a device of another node, and one that the node does not have now."""
        match = _DEVICE.fullmatch(device)
        gpu = self._gpus.get(int(match["minor"])) if match is not None else None
        if match is None or gpu is None or pool != self._name:
            return None
        if match["profile"] is None:
            return PoolDevice(gpu.uuid)
        one = _instance(gpu, match["profile"], int(match["start"]))
        if one is None:
            return None
        return PoolDevice(gpu.uuid, ClaimedMig(one.uuid, one.profile), f"{gpu.index}-{one.instance}")


def _instance(gpu: InstalledGpu, profile: str, start: int) -> MigInstance | None:
    """Names of devices have no dots: `1g10gb`."""
    named = [one for one in gpu.instances if re.sub("[^0-9a-z]", "", one.profile.lower()) == profile]
    # Without privileges, drivers do not report positions.
    fitting = [one for one in named if one.start in (None, start)]
    return fitting[0] if len(fitting) == 1 else None
