"""The configuration of claims for NVIDIA's driver is read strictly, and what is not supported is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from build.claimable import NODE, claimable
from build.prepared_claims import allocated
from shoal.api.claims import ResourceClaim
from shoal.api.wire import dec_hook
from shoal.devices.claim_config import DeviceType, check_supported, read_claim_config
from shoal.devices.claim_devices import ClaimName, devices_of_claim
from shoal.devices.claim_sharing import DeviceSharing, claim_daemon
from shoal.devices.claimable_devices import claimable_devices
from shoal.units.errors import UserError, Where

Obj = dict[str, Any]
Sharing = dict[str, DeviceSharing]
WHERE = Where(path="parameters")


def config(kind: str = "GpuConfig", **sharing: Any) -> Obj:
    found: Obj = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind}
    return {**found, "sharing": sharing} if sharing else found


def slices(interval: str) -> Obj:
    return config(strategy="TimeSlicing", timeSlicingConfig={"interval": interval})


def mps(**fields: Any) -> Obj:
    return config(strategy="MPS", mpsConfig=fields)


@pytest.mark.parametrize(
    "given",
    [
        config(),
        config("MigDeviceConfig"),
        config(strategy="TimeSlicing"),
        slices("Default"),
        slices("Long"),
        mps(defaultActiveThreadPercentage=50, defaultPinnedDeviceMemoryLimit="10Gi"),
        mps(defaultPerDevicePinnedMemoryLimit={"0": "1Gi", "GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c": "2Gi"}),
        config("MigDeviceConfig", strategy="MPS", mpsConfig={}),
    ],
)
def test_a_valid_configuration_is_read(given: Obj) -> None:
    assert type(read_claim_config(given, WHERE)).__name__ == given["kind"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "missing required field `kind`"),
        (config("ComputeDomain"), "Invalid value 'ComputeDomain'"),
        ({**config(), "apiVersion": "resource.nvidia.com/v2"}, "apiVersion"),
        ({**config(), "sharng": {}}, "unknown field `sharng`"),
        (config(strategy="Other"), "Invalid enum value 'Other'"),
        (slices("Huge"), "Invalid enum value 'Huge'"),
        (config(strategy="MPS", timeSlicingConfig={}), "sharing.timeSlicingConfig: is only allowed with the strategy"),
        (config(strategy="TimeSlicing", mpsConfig={}), "sharing.mpsConfig: is only allowed with the strategy MPS"),
        (config("MigDeviceConfig", strategy="TimeSlicing", timeSlicingConfig={}), "unknown field `timeSlicingConfig`"),
        (mps(defaultActiveThreadPercentage=101), "defaultActiveThreadPercentage"),
        (mps(defaultPinnedDeviceMemoryLimit="much"), 'defaultPinnedDeviceMemoryLimit: quantity "much"'),
        (mps(defaultPinnedDeviceMemoryLimit="0"), "must be greater than zero, got 0"),
        (mps(defaultPerDevicePinnedMemoryLimit={"first": "1Gi"}), "first: is neither the index nor the UUID of a GPU"),
    ],
)
def test_an_invalid_configuration_is_refused(given: Obj, said: str) -> None:
    with pytest.raises(UserError, match=r"^parameters") as refused:
        read_claim_config(given, WHERE)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("given", "device", "said"),
    [
        (config(), "gpu", ""),
        (config("MigDeviceConfig"), "mig", ""),
        (slices("Default"), "gpu", ""),
        (config(), "mig", "a GpuConfig does not apply to a device of type mig; use a MigDeviceConfig"),
        (slices("Short"), "gpu", ""),
        (mps(), "gpu", ""),
        (config("MigDeviceConfig", strategy="TimeSlicing"), "mig", ""),
        (config("MigDeviceConfig", strategy="MPS"), "mig", "sharing.strategy: MPS is not supported for MIG instances"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(given: Obj, device: DeviceType, said: str) -> None:
    read = read_claim_config(given, WHERE)
    if not said:
        check_supported(read, device, WHERE)
        return
    with pytest.raises(UserError) as refused:
        check_supported(read, device, WHERE)
    assert said in str(refused.value)


def prepared(*configs: Obj, request: str = "gpu", devices: tuple[str, ...] = ("gpu-1",), **of_result: Any) -> Sharing:
    """How each device is shared, by name."""
    claim = allocated("a", *devices, **of_result)
    claim["status"]["allocation"]["devices"]["config"] = list(configs)
    for result in claim["status"]["allocation"]["devices"]["results"]:
        result["request"] = request
    present = {one.name: one for one in claimable_devices(claimable())}
    name = ClaimName("team", "a", "uid-a")
    found = devices_of_claim(name, convert(claim, ResourceClaim, dec_hook=dec_hook), NODE, present)
    assert {one.requests for one in found} == {("gpu",)}
    return {one.device: one.sharing for one in found if isinstance(one.sharing, DeviceSharing)}


def entry(parameters: Obj, source: str = "FromClaim", driver: str = "gpu.nvidia.com", *requests: str) -> Obj:
    return {"source": source, "requests": list(requests), "opaque": {"driver": driver, "parameters": parameters}}


def test_the_configuration_of_a_claim_replaces_that_of_its_class() -> None:
    assert prepared(entry(config()), entry(mps(), "FromClass")) == {}
    assert prepared(entry(config(), "FromClass"), entry(mps())) == {"gpu-1": DeviceSharing(has_mps=True)}
    with pytest.raises(UserError, match=r"config\[1\].*GpuConfig does not apply|MigDeviceConfig does not apply"):
        prepared(entry(config(), "FromClass"), entry(config("MigDeviceConfig")))


def test_the_configuration_of_other_drivers_and_requests_does_not_matter() -> None:
    others = entry({"x": 1}, driver="other.example.com"), entry(mps(), "FromClaim", "gpu.nvidia.com", "second")
    assert prepared(*others) == {}


def test_an_alternative_is_configured_by_its_name_or_that_of_its_request() -> None:
    for name in ("gpu", "gpu/large"):
        assert prepared(entry(mps(), "FromClaim", "gpu.nvidia.com", name), request="gpu/large")
    assert not prepared(entry(mps(), "FromClaim", "gpu.nvidia.com", "gpu/small"), request="gpu/large")


def test_a_time_slice_applies_to_each_device_and_the_default_changes_nothing() -> None:
    two = ("gpu-1", "gpu-3")
    assert prepared(entry(slices("Long")), devices=two) == dict.fromkeys(two, DeviceSharing(interval="Long"))
    assert prepared(entry(slices("Default")), entry(config(strategy="TimeSlicing")), devices=two) == {}


UUID = claimable().gpus[3].uuid


@pytest.mark.parametrize(
    ("fields", "first", "second"),
    [
        ({}, DeviceSharing(has_mps=True), DeviceSharing(has_mps=True)),
        (
            {"defaultActiveThreadPercentage": 50, "defaultPinnedDeviceMemoryLimit": "10Gi"},
            DeviceSharing(has_mps=True, thread_percent=50, client_mib=10_240),
            DeviceSharing(has_mps=True, thread_percent=50, client_mib=10_240),
        ),
        (
            {
                "defaultPinnedDeviceMemoryLimit": "10Gi",
                "defaultPerDevicePinnedMemoryLimit": {"0": "1Gi", UUID: "512Mi"},
            },
            DeviceSharing(has_mps=True, client_mib=1_024),
            DeviceSharing(has_mps=True, client_mib=512),
        ),
    ],
)
def test_limits_of_mps_apply_by_position_and_by_uuid(fields: Obj, first: DeviceSharing, second: DeviceSharing) -> None:
    assert prepared(entry(mps(**fields)), devices=("gpu-1", "gpu-3")) == {"gpu-1": first, "gpu-3": second}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"defaultPerDevicePinnedMemoryLimit": {"1": "1Gi"}},
            "Limit[1]: is neither a position nor a UUID of the 1 devices",
        ),
        ({"defaultPerDevicePinnedMemoryLimit": {UUID: "1Gi"}}, "is neither a position nor a UUID of the 1 devices"),
        ({"defaultPinnedDeviceMemoryLimit": "1Ki"}, "defaultPinnedDeviceMemoryLimit: 1Ki is less than a mebibyte"),
    ],
)
def test_a_limit_that_no_device_has_is_refused(fields: Obj, said: str) -> None:
    with pytest.raises(UserError) as refused:
        prepared(entry(mps(**fields)))
    assert said in str(refused.value)


def test_a_device_of_another_claim_keeps_the_sharing_of_that_claim() -> None:
    with pytest.raises(UserError, match="gpu-1 is allocated with adminAccess"):
        prepared(entry(slices("Short")), adminAccess=True)


def test_one_daemon_has_one_share_of_the_multiprocessors() -> None:
    different = {"a": DeviceSharing(has_mps=True, thread_percent=20), "b": DeviceSharing(has_mps=True)}
    with pytest.raises(UserError, match=r"have different defaultActiveThreadPercentage: \[20, 100\]"):
        claim_daemon("uid", different, "/root")
    found = claim_daemon("uid", {"a": DeviceSharing(interval="Long"), "b": DeviceSharing(has_mps=True)}, "/root")
    assert found is not None
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "b"
