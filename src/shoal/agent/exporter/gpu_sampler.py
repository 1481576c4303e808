"""Keeps the last reading of one GPU.

A call to the driver of a GPU that has failed may never return. Therefore each GPU is read in a thread of its own, and
what others see is the last reading with its time; a reading that is too old does not count.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Condition, Event

import msgspec

from shoal.devices.port import GpuDriver, GpuReadings, LostGpu, UnknownGpuError

_log = logging.getLogger("shoal.agent.exporter")


class TakenReading(msgspec.Struct, frozen=True):
    readings: GpuReadings | None
    """None: the GPU is lost."""
    at_s: float


class GpuSampler:
    def __init__(
        self,
        driver: GpuDriver,
        uuid: str,
        seconds: Callable[[], float],
        taken: Callable[[str, TakenReading], None],
    ) -> None:
        """`taken` is called with each reading, in the thread that reads."""
        self._driver, self._uuid, self._seconds, self._taken = driver, uuid, seconds, taken
        self._last: TakenReading | None = None
        self._count = 0
        self._changed = Condition()
        self._reason = ""

    def take(self) -> None:
        """Read the GPU once; returns when the driver has answered."""
        readings: GpuReadings | None = None
        reason = ""
        try:
            found = self._driver.read(self._uuid)
            if isinstance(found, LostGpu):
                reason = found.reason
            else:
                readings = found
        except UnknownGpuError:
            reason = "the driver no longer lists it"
        except Exception as error:  # noqa: BLE001 - the agent continues with the other GPUs
            reason = f"{type(error).__name__}: {error}"
        if reason and reason != self._reason:
            _log.warning("GPU %s has no readings: %s", self._uuid, reason)
        taken = TakenReading(readings, self._seconds())
        self._taken(self._uuid, taken)
        with self._changed:
            self._reason, self._last = reason, taken
            self._count += 1
            self._changed.notify_all()

    def run(self, stop: Event, interval_s: float) -> None:
        self.take()
        while not stop.wait(interval_s):
            self.take()

    def wait_for(self, count: int, timeout_s: float) -> bool:
        """Whether the GPU was read that often within the time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count >= count, timeout_s)

    @property
    def last(self) -> TakenReading | None:
        return self._last
