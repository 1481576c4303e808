"""Defines how the exporter learns which containers of the node hold which devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from shoal.devices.dcgm_holders import ContainerHolding


class PodDevices(Protocol):
    def holdings(self) -> Sequence[ContainerHolding]:
        """The devices of all containers now. It may block for a bounded time. Raises `TemporaryError` if the kubelet
        does not answer.
        """
        ...
