"""Keeps the health of this node's GPUs up to date: one thread waits for Xids, another reads the GPUs at an interval.

Guarantees: an Xid is known as soon as the driver reports it, also while a reading takes long; a GPU whose reading does
not end is unhealthy, and neither the others nor those who ask for the health wait for it. Errors of the driver are
logged once and retried. An error of a listener is logged, and the other listeners are called.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import msgspec

from shoal.agent.patient_call import PatientCall, SilentDriverError
from shoal.devices.device_health import DeviceHealth, NodeHealth
from shoal.devices.health_reports import HealthChange, changes
from shoal.devices.port import GpuDriver, GpuList, GpuReadings, InstalledGpu, LostGpu, UnknownGpuError, XidEvent
from shoal.devices.xids import HealthChecks
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.health")
T = TypeVar("T")
Listener = Callable[[tuple[HealthChange, ...]], object]


class HealthTimes(msgspec.Struct, frozen=True):
    readings_s: float = 15.0
    """The time between two readings."""
    wait_s: float = 5.0
    """How long one call waits for an Xid."""
    patience_s: float = 10.0
    """How long one reading of a GPU may take."""
    retry_s: float = 5.0
    """After an error."""


class HealthWatcher:
    """`clock` gives seconds. Listeners are called in a thread of the watcher."""

    def __init__(
        self,
        driver: GpuDriver,
        clock: Callable[[], float],
        checks: HealthChecks | None = None,
        times: HealthTimes | None = None,
    ) -> None:
        self._driver, self._clock, self._times = driver, clock, times or HealthTimes()
        self._health = NodeHealth(checks)
        self._list = PatientCall(driver.gpus, self._times.patience_s)
        self._reads: dict[str, PatientCall[GpuReadings | LostGpu]] = {}
        self._listed = GpuList(())
        """As the driver listed them last."""
        self._known: dict[str, DeviceHealth] = {}
        self._listeners: list[Listener] = []
        self._xid_listeners: list[Callable[[XidEvent], object]] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._is_silent = False

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Called with the changes whenever there are some, until the function that is returned is called."""
        self._listeners.append(listener)
        return partial(self._forget, listener)

    def listen_to_xids(self, listener: Callable[[XidEvent], object]) -> None:
        """Called with each Xid, because the driver reports it to one caller only; before `start`."""
        self._xid_listeners.append(listener)

    def start(self) -> None:
        self.read()
        for name, work in (("xids", self._wait_for_xids), ("readings", self._read_repeatedly)):
            thread = threading.Thread(target=work, name=f"gpu-health-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, within_s: float = 1.0) -> None:
        """A thread that is blocked in the driver is left behind."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(within_s)

    def health(self) -> tuple[DeviceHealth, ...]:
        with self._lock:
            return self._health.all()

    def gpus(self) -> tuple[InstalledGpu, ...]:
        """As the driver listed them last, also those that are lost; the driver is not called."""
        with self._lock:
            return self._health.gpus()

    def is_usable(self, uuid: str, instance: int | None = None) -> bool:
        """Whether the GPU, or this GPU instance of it, can be given to a container."""
        with self._lock:
            return self._health.of(uuid).allows(instance)

    def read(self) -> None:
        """Read all GPUs once. A GPU that does not answer can keep the driver from listing the others as well; they are
        read as they were listed before.
        """
        fault: Exception | None = None
        try:
            self._listed = self._list()
        except SilentDriverError as error:
            fault = error
        except TemporaryError as error:
            self._complain(error)
            return
        readings: dict[str, GpuReadings | LostGpu] = {}
        silent: set[str] = set()
        begun = [(gpu.uuid, self._reads.setdefault(gpu.uuid, self._read_of(gpu.uuid))) for gpu in self._listed.gpus]
        for _, read in begun:
            read.begin()
        for uuid, read in begun:
            try:
                readings[uuid] = read()
            except SilentDriverError:
                silent.add(uuid)
            except (TemporaryError, UnknownGpuError) as error:
                fault = error
        if fault is None:
            self._answers()
        else:
            self._complain(fault)
        with self._lock:
            self._health.update(self._listed, readings, self._clock(), silent)
            found = self._changes()
        self._report(found)

    def next_xid(self) -> bool:
        """Wait for one Xid and record it; whether there was one."""
        try:
            event = self._driver.next_xid(self._times.wait_s)
        except TemporaryError as error:
            self._complain(error)
            self._stopped.wait(self._times.retry_s)
            return False
        if event is None:
            return False
        _tell(self._xid_listeners, event)
        with self._lock:
            self._health.record(event, self._clock())
            found = self._changes()
        self._report(found)
        return True

    def _forget(self, listener: Listener) -> None:
        with suppress(ValueError):  # it was called before
            self._listeners.remove(listener)

    def _wait_for_xids(self) -> None:
        while not self._stopped.is_set():
            before_s = self._clock()
            if not self._attempt(self.next_xid):
                # A simulated driver does not wait.
                self._stopped.wait(max(self._times.wait_s - (self._clock() - before_s), 0.0))

    def _read_repeatedly(self) -> None:
        while not self._stopped.wait(self._times.readings_s):
            self._attempt(self.read)

    def _attempt(self, work: Callable[[], T]) -> T | None:
        """None after an unexpected error, which must not end the thread: nothing would start it again."""
        try:
            return work()
        except Exception:  # noqa: BLE001 - see above
            _log.exception("the health of the GPUs: failed; again in %.0f s", self._times.retry_s)
            self._stopped.wait(self._times.retry_s)
            return None

    def _read_of(self, uuid: str) -> PatientCall[GpuReadings | LostGpu]:
        return PatientCall(partial(self._driver.read, uuid), self._times.patience_s)

    def _changes(self) -> tuple[HealthChange, ...]:
        now = self._health.all()
        found = changes(self._known, now)
        self._known = {one.uuid: one for one in now}
        return found

    def _report(self, found: tuple[HealthChange, ...]) -> None:
        for change in found:
            _log.log(logging.INFO if change.cause is None else logging.WARNING, "%s", change.message)
        if found:
            _tell(self._listeners, found)

    def _complain(self, error: Exception) -> None:
        if not self._is_silent:
            _log.warning("the health of the GPUs is not read: %s", error)
        self._is_silent = True

    def _answers(self) -> None:
        if self._is_silent:
            _log.info("the driver responds again")
        self._is_silent = False


def _tell(listeners: Iterable[Callable[[T], object]], what: T) -> None:
    for listener in [*listeners]:
        try:
            listener(what)
        except Exception:  # noqa: BLE001 - the other listeners have to know it as well
            _log.exception("a change of the health of the GPUs was not passed on")
