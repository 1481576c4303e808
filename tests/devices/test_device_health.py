"""A GPU is unhealthy after the Xids that the plugin heeds, and healthy again after a reset."""

from __future__ import annotations

import msgspec
import pytest

from shoal.devices.device_health import DeviceHealth, NodeHealth
from shoal.devices.health_reports import HealthTaint, changes, condition_of, is_tainted, parse_taint
from shoal.devices.port import (
    EccErrors,
    GpuList,
    GpuReadings,
    InstalledGpu,
    LostGpu,
    NvlinkPeer,
    RecoveryAction,
    RemappedRows,
    XidEvent,
)
from shoal.devices.xids import health_checks
from shoal.units.errors import UserError

A, B = "GPU-a", "GPU-b"
CALM = GpuReadings(energy_mj=1000, recovery_action="none")


def listed(*lost: LostGpu, links: int = 18) -> GpuList:
    gone = {one.uuid for one in lost}
    pairs = ((0, A, B), (1, B, A))
    gpus = [
        InstalledGpu(index, uuid, "NVIDIA H100", "", peers=(NvlinkPeer(other, links),))
        for index, uuid, other in pairs
        if uuid not in gone
    ]
    return GpuList(tuple(gpus), lost)


class Node:
    """A node with two GPUs, at a time that each update advances by ten seconds."""

    def __init__(self, disable: str = "", enable: str = "") -> None:
        self.health = NodeHealth(health_checks(disable, enable))
        self.now_s = 0.0
        self.sees()

    def sees(self, a: GpuReadings = CALM, listing: GpuList | None = None) -> NodeHealth:
        self.now_s += 10.0
        found = listed() if listing is None else listing
        lost = {one.uuid for one in found.lost}
        readings = {uuid: one for uuid, one in ((A, a), (B, CALM)) if uuid not in lost}
        self.health.update(found, readings, self.now_s)
        return self.health

    def xid(self, number: int, instance: int | None = None) -> NodeHealth:
        self.health.record(XidEvent(A, number, instance), self.now_s)
        return self.health


def codes(gpu: DeviceHealth) -> list[str]:
    return [cause.code for cause in gpu.causes]


def test_gpus_without_faults_are_healthy() -> None:
    found = Node().health.all()
    assert [(one.index, one.uuid, one.is_healthy) for one in found] == [(0, A, True), (1, B, True)]


@pytest.mark.parametrize("number", [48, 62, 64, 74, 79, 94, 95, 119, 999])
def test_an_xid_that_the_plugin_heeds_makes_its_gpu_unhealthy_at_once(number: int) -> None:
    node = Node()
    node.xid(number)
    assert not node.health.of(A).is_healthy
    assert node.health.of(B).is_healthy


@pytest.mark.parametrize("number", [13, 31, 43, 45, 68, 109])
def test_an_error_of_the_program_is_a_warning(number: int) -> None:
    node = Node()
    node.xid(number)
    assert node.health.of(A).is_healthy
    assert codes(node.health.of(A)) == [f"xid-{number}"]


@pytest.mark.parametrize(
    ("disable", "enable", "heeded"),
    [
        ("", "", {48, 94}),
        ("94", "", {48}),
        ("48, 94", "", set()),
        ("xids", "", set()),
        ("all", "", set()),
        ("all", "94", {94}),
        ("94", "94", {48, 94}),
        ("", "13", {13, 48, 94}),
        ("all", "all", {13, 48, 94}),
        ("odd,94", "", {48}),
    ],
)
def test_the_variables_of_the_plugin_choose_the_xids(disable: str, enable: str, heeded: set[int]) -> None:
    checks = health_checks(disable, enable)
    assert {number for number in (13, 48, 94) if checks.heeds(number)} == heeded


def test_the_driver_that_recommends_nothing_any_more_ends_the_fault() -> None:
    node = Node()
    node.xid(95)
    assert not node.sees(with_action("drain-and-reset")).of(A).is_healthy
    assert codes(node.health.of(A)) == ["xid-95", "recovery-action"]
    assert node.sees().of(A).causes == ()


def test_a_fault_without_recommendation_ends_after_a_minute() -> None:
    node = Node()
    node.xid(94)
    for _ in range(5):
        assert not node.sees().of(A).is_healthy
    assert node.sees().of(A).is_healthy


def test_without_recommendations_only_a_reload_of_the_driver_ends_the_fault() -> None:
    node = Node()
    old = GpuReadings(energy_mj=1000)
    node.sees(old)
    node.xid(48)
    for energy in (1000, 2000, 3000):
        assert not node.sees(GpuReadings(energy_mj=energy)).of(A).is_healthy
    assert node.sees(GpuReadings(energy_mj=5)).of(A).is_healthy


def test_an_xid_before_the_first_reading_ends_with_a_reload_too() -> None:
    node = Node()
    node.sees(GpuReadings())
    node.xid(48)
    assert not node.sees(GpuReadings(energy_mj=700)).of(A).is_healthy
    assert node.sees(GpuReadings(energy_mj=5)).of(A).is_healthy


def test_a_lost_gpu_is_unhealthy_until_it_is_listed_again() -> None:
    node = Node()
    node.xid(79)
    found = node.sees(listing=listed(LostGpu(0, A, "GPU is lost"))).of(A)
    assert (found.index, codes(found), found.is_healthy) == (0, ["lost", "xid-79"], False)
    assert node.sees().of(A).causes == ()


def test_a_gpu_that_is_lost_during_its_reading_is_unhealthy() -> None:
    node = Node()
    node.health.update(listed(), {A: LostGpu(0, A, "lost"), B: CALM}, 20.0)
    assert not node.health.of(A).is_healthy


def test_a_gpu_lost_before_its_first_report_is_listed_by_its_number() -> None:
    node = Node()
    found = node.sees(listing=GpuList((), (LostGpu(3, None, "GPU is lost"),))).all()
    assert [(one.index, one.uuid, one.is_healthy) for one in found] == [(3, "GPU 3", False)]


def test_an_xid_of_one_instance_leaves_the_others_usable() -> None:
    node = Node()
    node.xid(94, instance=5)
    found = node.health.of(A)
    assert [found.allows(one) for one in (5, 6, None)] == [False, True, False]


def test_an_xid_of_the_whole_gpu_takes_all_instances() -> None:
    node = Node()
    node.xid(95)
    found = node.health.of(A)
    assert [found.allows(one) for one in (5, None)] == [False, False]


def test_an_error_that_repeats_is_one_cause() -> None:
    node = Node()
    for _ in range(1000):
        node.xid(94)
    assert codes(node.health.of(A)) == ["xid-94"]


def test_many_different_errors_are_bounded() -> None:
    node = Node()
    for number in range(1000):
        node.xid(number)
    assert len(node.health.of(A).causes) == 64


def test_a_failed_remap_is_unhealthy_and_a_pending_one_a_warning() -> None:
    node = Node()
    rows = RemappedRows(1, 0, is_pending=True, has_failed=False)
    found = node.sees(msgspec.structs.replace(CALM, remapped_rows=rows)).of(A)
    assert (codes(found), found.is_healthy) == (["row-remap-pending"], True)
    failed = msgspec.structs.replace(rows, has_failed=True)
    found = node.sees(msgspec.structs.replace(CALM, remapped_rows=failed)).of(A)
    assert (codes(found), found.is_healthy) == (["row-remap-failed"], False)


def test_heat_and_memory_errors_are_warnings_with_their_figures() -> None:
    hot = msgspec.structs.replace(
        CALM,
        temperature_c=91,
        throttle_reasons=("hw_thermal_slowdown", "sw_power_cap"),
        ecc=EccErrors(corrected=7, uncorrected=2),
    )
    found = Node().sees(hot).of(A)
    assert [cause.message for cause in found.causes] == [
        "uncorrected memory errors since the driver was loaded: 2",
        "clocks are reduced by heat at 91 C: hw_thermal_slowdown",
    ]
    assert found.is_healthy


def test_nvlink_connections_that_are_down_are_a_warning_of_both_gpus() -> None:
    node = Node()
    found = node.sees(listing=listed(links=16)).all()
    assert [[cause.message for cause in one.causes] for one in found] == [["2 of 18 NVLink connections are down"]] * 2
    assert all(one.is_healthy for one in found)


def test_a_lost_peer_is_no_fault_of_the_other_gpu() -> None:
    node = Node()
    alone = GpuList((InstalledGpu(1, B, "NVIDIA H100", ""),), (LostGpu(0, A, "lost"),))
    node.sees(listing=alone)
    assert node.health.of(B).causes == ()


def test_a_gpu_that_was_removed_is_forgotten() -> None:
    node = Node()
    node.xid(48)
    node.sees(listing=GpuList((InstalledGpu(1, B, "NVIDIA H100", ""),)))
    assert [one.uuid for one in node.health.all()] == [B]


def test_each_new_cause_is_one_change_and_the_recovery_another() -> None:
    node = Node()
    before = {one.uuid: one for one in node.health.all()}
    node.xid(95)
    failed = node.health.all()
    found = changes(before, failed)
    assert [(one.reason, one.message.partition(";")[0]) for one in found] == [
        ("GPUUnhealthy", "GPU 0 (GPU-a): Xid 95: Uncontained memory error")
    ]
    assert changes({one.uuid: one for one in failed}, failed) == ()
    node.sees(with_action("reset"))
    recovered = node.sees().all()
    found = changes({one.uuid: one for one in failed}, recovered)
    assert [(one.reason, one.message) for one in found] == [("GPURecovered", "GPU 0 (GPU-a) is healthy again")]


def test_a_warning_is_a_change_of_its_own_reason() -> None:
    node = Node()
    before = {one.uuid: one for one in node.health.all()}
    node.xid(13)
    assert [one.reason for one in changes(before, node.health.all())] == ["GPUWarning"]


def test_the_condition_counts_and_names_unhealthy_gpus() -> None:
    node = Node()
    assert condition_of(node.health.all()) == (True, "GPUsHealthy", "2 GPUs are healthy")
    node.xid(13)
    assert condition_of(node.health.all())[2] == "2 GPUs are healthy; 1 with warnings"
    node.xid(79)
    assert condition_of(node.health.all()) == (
        False,
        "GPUsUnhealthy",
        "1 of 2 GPUs are unhealthy: GPU 0 (GPU-a): Xid 79: GPU has fallen off the bus",
    )


def test_the_taint_follows_its_policy() -> None:
    node = Node()
    some, every = HealthTaint("gpu-health", "failed", "NoSchedule"), HealthTaint("k", "", "NoExecute", "all")
    assert [is_tainted(node.health.all(), one) for one in (some, every)] == [False, False]
    node.xid(79)
    assert [is_tainted(node.health.all(), one) for one in (some, every)] == [True, False]
    node.health.record(XidEvent(B, 79), 20.0)
    assert is_tainted(node.health.all(), every)
    assert not is_tainted((), every)


def test_a_taint_is_read_as_kubectl_writes_it() -> None:
    assert parse_taint("gpu-health=failed:NoSchedule") == HealthTaint("gpu-health", "failed", "NoSchedule")
    assert parse_taint("gpu-health:NoExecute").to_api() == {"key": "gpu-health", "value": "", "effect": "NoExecute"}
    for odd in ("", "gpu-health", "gpu-health=failed", "=x:NoSchedule", "gpu:Never"):
        with pytest.raises(UserError):
            parse_taint(odd)


def with_action(action: RecoveryAction) -> GpuReadings:
    return msgspec.structs.replace(CALM, recovery_action=action)
