"""The watcher knows Xids at once, reads GPUs, reports each change once, and survives a driver that does not respond."""

from __future__ import annotations

import logging
import threading

import pytest

from build.gpu_pods import device_manager
from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.devices.health_reports import HealthChange
from shoal.devices.port import DriverVersions, GpuList, GpuReadings, LostGpu, XidEvent
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.units.errors import TemporaryError


class SilentDriver:
    """Does not respond while `is_silent`; else it is the simulated driver."""

    def __init__(self, inner: SimulatedDriver) -> None:
        self._inner = inner
        self.is_silent = False
        self.hold = threading.Event()
        self.hold.set()

    def versions(self) -> DriverVersions:
        return self._inner.versions()

    def gpus(self) -> GpuList:
        self._check()
        return self._inner.gpus()

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        assert self.hold.wait(30)
        return self._inner.read(uuid)

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        self._check()
        return self._inner.next_xid(timeout_s)

    def close(self) -> None:
        self._inner.close()

    def _check(self) -> None:
        if self.is_silent:
            raise TemporaryError("NVIDIA's driver does not respond: error 999", 5.0)


class Watched:
    def __init__(self) -> None:
        self.manager = device_manager("dgx-h100")
        self.driver = SilentDriver(SimulatedDriver(self.manager, DcgmExporter(self.manager, booted_s=0.0), lambda: 1.0))
        self.now_s = 0.0
        self.found: list[HealthChange] = []
        self.watcher = HealthWatcher(self.driver, lambda: self.now_s, times=HealthTimes(readings_s=3600, wait_s=0))
        self.watcher.listen(self.found.extend)
        self.watcher.read()

    @property
    def uuid(self) -> str:
        return self.manager.machine.gpus[3].uuid


def test_an_xid_is_a_change_at_once() -> None:
    watched = Watched()
    watched.manager.fail(3, 95)
    assert watched.watcher.next_xid()
    assert not watched.watcher.is_usable(watched.uuid)
    assert [(one.gpu.index, one.reason) for one in watched.found] == [(3, "GPUUnhealthy")]
    assert not watched.watcher.next_xid()


def test_each_xid_is_passed_on() -> None:
    watched = Watched()
    found: list[XidEvent] = []
    watched.watcher.listen_to_xids(found.append)
    watched.manager.fail(3, 13)
    watched.watcher.next_xid()
    watched.watcher.next_xid()
    assert [(one.uuid, one.xid) for one in found] == [(watched.uuid, 13)]


def test_a_lost_gpu_is_found_by_reading() -> None:
    watched = Watched()
    watched.manager.fail(3, 79)
    watched.watcher.read()
    assert [one.index for one in watched.watcher.health() if not one.is_healthy] == [3]


def test_a_repaired_gpu_recovers_and_says_so() -> None:
    watched = Watched()
    watched.manager.fail(3, 95)
    watched.watcher.next_xid()
    watched.watcher.read()
    watched.manager.mend(3)
    watched.now_s = 15.0
    watched.watcher.read()
    assert watched.watcher.is_usable(watched.uuid)
    assert watched.found[-1].reason == "GPURecovered"


def test_a_driver_that_does_not_respond_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched()
    caplog.set_level(logging.INFO, "shoal.agent.health")
    watched.driver.is_silent = True
    watched.watcher.read()
    watched.watcher.read()
    watched.driver.is_silent = False
    watched.watcher.read()
    assert [record.message for record in caplog.records] == [
        "the health of the GPUs is not read: NVIDIA's driver does not respond: error 999",
        "the driver responds again",
    ]


def test_a_reading_that_does_not_end_delays_neither_xids_nor_answers() -> None:
    watched = Watched()
    watched.driver.hold.clear()
    reading = threading.Thread(target=watched.watcher.read, daemon=True)
    reading.start()
    watched.manager.fail(3, 95)
    assert watched.watcher.next_xid()
    assert not watched.watcher.is_usable(watched.uuid)
    watched.driver.hold.set()
    reading.join(30)
    assert not reading.is_alive()


def test_the_threads_end_when_the_watcher_stops() -> None:
    watched = Watched()
    before = threading.active_count()
    watched.watcher.start()
    watched.watcher.stop(within_s=30)
    assert threading.active_count() == before
