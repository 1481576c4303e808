"""Devices of claims: whole GPUs, MIG instances of their parents, shared claims, and claims that only administer."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.client.item import Item, item_of
from shoal.cost.records import FULL_SHARE, DeviceShare
from shoal.store.history.claim_rows import claimed_shares, read_slice, users_of, with_slices
from shoal.store.history.node_rows import NodeDeviceNames

DRIVER = "gpu.nvidia.com"


def _item(**parts: Any) -> Item:
    return item_of(msgspec.json.encode({"metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}, **parts}))


def _text(**values: str) -> dict[str, Any]:
    return {key: {"string": value} for key, value in values.items()}


def _slice() -> Item:
    whole = {"name": "gpu-0", "attributes": _text(type="gpu", uuid="GPU-a", productName="NVIDIA H100 80GB HBM3")}
    part = _text(type="mig", uuid="MIG-b", parentUUID="GPU-b", profile="3g.40gb", productName="NVIDIA H100 80GB HBM3")
    other = {"name": "nic", "attributes": _text(type="nic")}
    devices = [whole, {"name": "gpu-1-mig", "attributes": part}, other]
    return _item(spec={"driver": DRIVER, "pool": {"name": "n"}, "nodeName": "n", "devices": devices})


def _claim(*devices: str, users: int = 1, **more: Any) -> Item:
    results = [{"driver": DRIVER, "pool": "n", "device": name, **more} for name in devices]
    reserved = [{"resource": "pods", "name": f"p{at}", "uid": f"uid-{at}"} for at in range(users)]
    return _item(status={"allocation": {"devices": {"results": results}}, "reservedFor": reserved})


def test_a_slice_names_the_gpus_of_its_node_and_the_instances_of_their_parents() -> None:
    found = read_slice(_slice())
    assert found is not None
    assert (found.node, found.gpus, found.product) == ("n", ("GPU-a", "GPU-b"), "NVIDIA-H100-80GB-HBM3")
    assert found.shares[DRIVER, "n", "gpu-1-mig"] == DeviceShare("GPU-b", FULL_SHARE // 2, "MIG-b", FULL_SHARE // 7 * 3)


def test_a_slice_of_no_node_and_one_without_gpus_are_left_out() -> None:
    assert read_slice(_item(spec={"driver": "nic", "pool": {"name": "n"}, "nodeName": "n", "devices": []})) is None
    assert read_slice(_item(spec={})) is None


def test_a_claim_has_the_devices_of_its_allocation() -> None:
    found = read_slice(_slice())
    assert found is not None
    whole, part = DeviceShare("GPU-a"), DeviceShare("GPU-b", FULL_SHARE // 2, "MIG-b", FULL_SHARE // 7 * 3)
    assert claimed_shares(_claim("gpu-0", "gpu-1-mig", "unknown"), found.shares) == (whole, part)
    assert claimed_shares(_claim("gpu-0", users=4), found.shares) == (DeviceShare("GPU-a", FULL_SHARE // 4),)
    assert claimed_shares(_claim("gpu-0", adminAccess=True), found.shares) == ()
    assert claimed_shares(_item(status={}), found.shares) == ()
    assert users_of(_claim("gpu-0", users=2)) == ["uid-0", "uid-1"]


def test_a_node_whose_devices_only_a_driver_for_claims_reports_has_them() -> None:
    found = read_slice(_slice())
    assert found is not None
    names = with_slices(NodeDeviceNames(), [found])
    assert names.devices == ("GPU-a", "GPU-b")
    assert names.product == "NVIDIA-H100-80GB-HBM3"
    known = NodeDeviceNames(("GPU-a", "GPU-b"), {}, {"nvidia.com/gpu": 4})
    assert with_slices(known, [found]) is known
