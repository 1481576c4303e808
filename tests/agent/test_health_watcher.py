"""The watcher knows Xids at once, reads GPUs, reports each change once, and survives a driver that does not respond."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import cast

import pytest

from build.gpu_pods import device_manager
from build.silent_driver import SilentDriver
from shoal.agent.health.watcher import HealthTimes, HealthWatcher
from shoal.devices.health_reports import HealthChange
from shoal.devices.port import GpuDriver, GpuList, XidEvent
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.simulated_driver import SimulatedDriver


class Watched:
    def __init__(self) -> None:
        self.manager = device_manager("dgx-h100")
        self.driver = SilentDriver(SimulatedDriver(self.manager, DcgmExporter(self.manager, booted_s=0.0), lambda: 1.0))
        self.now_s = 0.0
        self.found: list[HealthChange] = []
        self.watcher = HealthWatcher(
            self.driver, lambda: self.now_s, times=HealthTimes(readings_s=3600, wait_s=0, patience_s=0.2)
        )
        self.watcher.listen(self.found.extend)
        self.watcher.read()

    @property
    def uuid(self) -> str:
        return self.manager.machine.gpus[3].uuid

    def until(self, is_so: Callable[[], object]) -> None:
        """Threads of the driver have ended a moment after they may."""
        assert any(is_so() for _ in range(10_000))


def test_an_xid_is_a_change_at_once() -> None:
    watched = Watched()
    watched.manager.fail(3, 95)
    assert watched.watcher.next_xid()
    assert not watched.watcher.is_usable(watched.uuid)
    assert [(one.gpu.index, one.reason) for one in watched.found] == [(3, "GPUUnhealthy")]
    assert not watched.watcher.next_xid()


def test_a_listener_that_has_ended_is_not_called_and_the_others_are() -> None:
    watched = Watched()
    ended: list[HealthChange] = []
    end = watched.watcher.listen(ended.extend)
    end()
    end()
    watched.manager.fail(3, 95)
    watched.watcher.next_xid()
    assert (ended, len(watched.found)) == ([], 1)


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
    assert watched.uuid in {gpu.uuid for gpu in watched.watcher.gpus()}, "its pods are found by its instances"


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


def test_a_listener_that_fails_keeps_neither_others_nor_later_changes_from_being_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched()
    found: list[HealthChange] = []

    def fails(_: object) -> None:
        raise RuntimeError("the socket of the kubelet is odd")

    watched.watcher.listen(fails)
    watched.watcher.listen_to_xids(fails)
    watched.watcher.listen(found.extend)
    for gpu in (3, 4):
        watched.manager.fail(gpu, 95)
        assert watched.watcher.next_xid()
    assert [one.gpu.index for one in found] == [3, 4]
    assert "the socket of the kubelet is odd" in caplog.text


@pytest.mark.parametrize("work", ["xids", "readings"])
def test_an_unexpected_error_does_not_end_a_thread(caplog: pytest.LogCaptureFixture, work: str) -> None:
    watched = Watched()
    inner, calls, goes_on = watched.driver, iter(range(10_000)), threading.Event()

    class Odd:
        def __getattr__(self, name: str) -> object:
            return getattr(inner, name)

        def fails_at_first(self) -> None:
            if next(calls) == 0:
                raise ValueError("odd")
            goes_on.set()

        def gpus(self) -> GpuList:
            if work == "readings" and watcher.is_started:
                self.fails_at_first()
            return inner.gpus()

        def next_xid(self, timeout_s: float) -> XidEvent | None:
            if work == "xids":
                self.fails_at_first()
            return inner.next_xid(timeout_s)

    class Watcher(HealthWatcher):
        is_started = False

    times = HealthTimes(readings_s=0.01, wait_s=0.01, retry_s=0.01)
    watcher = Watcher(cast("GpuDriver", Odd()), lambda: 0.0, times=times)
    watcher.start()
    watcher.is_started = True
    try:
        assert goes_on.wait(30)
    finally:
        watcher.stop(within_s=30)
    assert "ValueError: odd" in caplog.text


def test_a_gpu_whose_reading_does_not_end_is_unhealthy_and_the_others_are_read() -> None:
    watched = Watched()
    watched.driver.hangs = watched.uuid
    watched.driver.hold.clear()
    watched.manager.fail(5, 79)
    watched.watcher.read()
    assert [one.index for one in watched.watcher.health() if not one.is_healthy] == [3, 5]
    assert [cause.code for cause in watched.watcher.health()[3].causes] == ["silent"]
    watched.driver.hold.set()

    def is_usable() -> bool:
        watched.watcher.read()
        return watched.watcher.is_usable(watched.uuid)

    watched.until(is_usable)


def test_a_list_of_gpus_that_does_not_end_leaves_the_health_of_each_gpu_known() -> None:
    watched = Watched()
    watched.driver.hangs = watched.uuid
    watched.driver.hangs_at_list = True
    watched.driver.hold.clear()
    watched.manager.fail(5, 95)
    watched.watcher.next_xid()
    watched.watcher.read()
    assert [one.index for one in watched.watcher.health() if not one.is_healthy] == [3, 5]
    watched.driver.hold.set()


def test_a_gpu_that_was_silent_for_a_while_keeps_its_xids() -> None:
    """A driver that answers again is no sign of a reset."""
    watched = Watched()
    watched.manager.fail(3, 119)
    watched.watcher.next_xid()
    watched.driver.hangs = watched.uuid
    watched.driver.hold.clear()
    watched.watcher.read()
    watched.driver.hold.set()

    def codes() -> list[str]:
        watched.watcher.read()
        return [cause.code for cause in watched.watcher.health()[3].causes]

    watched.until(lambda: "silent" not in codes())
    assert "xid-119" in codes()
