"""Streams the health of the devices of claims to the kubelet, which shows it in the statuses of containers.

Guarantees: each stream begins with all devices, gets all of them again when the health of one has changed, and often
enough that the kubelet never takes them for unknown. While the driver does not respond, the health is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import grpc

from shoal.agent.protos import drahealth_pb2 as messages
from shoal.devices.claimable_devices import ClaimedHealth
from shoal.units.errors import TemporaryError

_INTERVAL_S, _TIMEOUT_S = 10.0, 30
"""How often all devices are sent, and after which time without news the kubelet takes a device for unknown."""
_MOST_MESSAGE = 1000


class DevicesWithHealth(Protocol):
    def health(self) -> Sequence[ClaimedHealth]:
        """Of all devices that claims can have. Raises `TemporaryError` if the driver does not respond."""
        ...


class HealthStream:
    """Implements `HealthService`. `pool`: that of this node. `now`: seconds since 1970."""

    def __init__(
        self, pool: str, devices: DevicesWithHealth, now: Callable[[], float], interval_s: float = _INTERVAL_S
    ) -> None:
        self._pool, self._devices, self._now, self._interval_s = pool, devices, now, interval_s
        self._changed = threading.Condition()
        self._version = 0
        self._known: tuple[ClaimedHealth, ...] = ()

    def wake(self) -> None:
        """The health of a device may have changed; from any thread."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def watch(self, context: grpc.ServicerContext) -> Iterator[messages.NodeWatchResourcesResponse]:
        # A stream that the kubelet ends does not wait for the next change.
        context.add_callback(self.wake)
        while context.is_active():
            with self._changed:
                version = self._version
            yield self._answer()
            with self._changed:
                self._changed.wait_for(lambda version=version: self._version != version, self._interval_s)  # type: ignore[misc]

    def _answer(self) -> messages.NodeWatchResourcesResponse:
        at_s = int(self._now())
        try:
            self._known = tuple(self._devices.health())
        except TemporaryError as error:
            devices = [self._device(one, messages.UNKNOWN, str(error), at_s) for one in self._known]
            return messages.NodeWatchResourcesResponse(devices=devices)
        devices = [
            self._device(one, messages.HEALTHY if one.is_healthy else messages.UNHEALTHY, one.message, at_s)
            for one in self._known
        ]
        return messages.NodeWatchResourcesResponse(devices=devices)

    def _device(
        self, one: ClaimedHealth, health: messages.HealthStatus, message: str, at_s: int
    ) -> messages.DeviceHealth:
        return messages.DeviceHealth(
            device=messages.DeviceIdentifier(pool_name=self._pool, device_name=one.name),
            health=health,
            last_updated_time=at_s,
            health_check_timeout_seconds=_TIMEOUT_S,
            message=message[:_MOST_MESSAGE],
        )
