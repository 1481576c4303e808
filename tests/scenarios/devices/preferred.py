"""Cases of preferred allocation: which devices the plugin prefers for a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.devices.advertised_devices import PhysicalDevice
from shoal.devices.device_ids import device_of_replica
from shoal.devices.gpu_groups import Scores, pair_scores
from shoal.devices.port import InstalledGpu, NvlinkPeer, PciePeer
from shoal.devices.preferred_allocation import preferred

from ..result import Result
from .verdicts import Raw

FAMILY = "preferred"


def results_of_case(raw: Raw) -> list[Result]:
    name, expect = str(raw.get("id", "")), raw.get("expect") or {}
    case = {key: value for key, value in raw.items() if key != "expect"}
    if "steps" in expect:
        level, diff = _sequence(case, expect["steps"])
    elif "machine" in case:
        level, diff = _step(whole_gpus(case), expect)
    else:
        level, diff = _replicas(replicas(case), expect)
    return [Result(name, FAMILY, "fail" if diff else "pass", level, diff)]


def whole_gpus(case: Raw) -> list[int]:
    """The chosen GPUs; empty if there is no choice."""
    machine = case["machine"]
    devices = [_device(_uuid(index), _uuid(index), index) for index in range(machine["gpus"])]
    found = preferred(
        [devices[index] for index in case["available"]],
        [devices[index] for index in case.get("required") or ()],
        devices,
        case["size"],
        packed=False,
        scores=_scores(machine),
    )
    return sorted(device.gpu for device in found)


def replicas(case: Raw) -> dict[str, int]:
    """How many replicas of each GPU are chosen."""
    gpus = list(dict.fromkeys(device_of_replica(one) for one in case["devices"]))
    count = Counter(device_of_replica(one) for one in case["devices"])
    devices = {
        one: _device(one, device_of_replica(one), gpus.index(device_of_replica(one)), count[device_of_replica(one)])
        for one in case["devices"]
    }
    found = preferred(
        [devices[one] for one in case["available"]],
        [devices[one] for one in case.get("required") or ()],
        list(devices.values()),
        case["size"],
        packed=case["policy"] == "packed",
        scores={},
    )
    return dict(Counter(device.physical for device in found))


def _step(chosen: Sequence[int], expect: Raw) -> tuple[int, list[str]]:
    if expect.get("refused"):
        return (2, []) if not chosen else (0, [f"expected a refusal, got {chosen}"])
    acceptable = [sorted(one) for one in expect.get("acceptable") or [expect["set"]]]
    if list(chosen) not in acceptable:
        return 0, [f"expected one of {acceptable}, got {chosen}"]
    # Among equally good sets the first one is a matter of order.
    return (2 if list(chosen) == sorted(expect["set"]) else 1), []


def _sequence(case: Raw, steps: Sequence[Raw]) -> tuple[int, list[str]]:
    """Later steps are compared while the sets were the same before."""
    available, level, seen = list(case["available"]), 2, set()
    for number, step in enumerate(steps):
        chosen = whole_gpus({**case, "available": available, "size": step["size"]})
        is_first = step["size"] not in seen
        if level > 1 or is_first or step.get("refused"):
            reached, diff = _step(chosen, step)
            if diff:
                return 0, [f"step {number}: {one}" for one in diff]
            level = min(level, reached)
        seen.add(step["size"])
        available = [index for index in available if index not in chosen]
    return level, []


def _replicas(chosen: dict[str, int], expect: Raw) -> tuple[int, list[str]]:
    if expect.get("refused"):
        return (2, []) if not chosen else (0, [f"expected a refusal, got {chosen}"])
    alternatives = expect["perGpuAnyOf"]
    plain = [{gpu: count for gpu, count in one.items() if count} for one in alternatives]
    return (2, []) if chosen in plain else (0, [f"expected one of {alternatives}, got {chosen}"])


def _scores(machine: Raw) -> Scores:
    nvlink: dict[int, list[NvlinkPeer]] = {}
    pcie: dict[int, list[PciePeer]] = {}
    for link in machine["links"]:
        for one, other in ((link["a"], link["b"]), (link["b"], link["a"])):
            if link["nvlinks"]:
                nvlink.setdefault(one, []).append(NvlinkPeer(_uuid(other), link["nvlinks"]))
            if link["pcie"]:
                pcie.setdefault(one, []).append(PciePeer(_uuid(other), link["pcie"]))
    return pair_scores(
        [
            InstalledGpu(
                index, _uuid(index), "", "", peers=tuple(nvlink.get(index, ())), pcie_peers=tuple(pcie.get(index, ()))
            )
            for index in range(machine["gpus"])
        ]
    )


def _uuid(index: int) -> str:
    return f"GPU-{index:02d}"


def _device(own: str, physical: str, gpu: int, count: int = 1) -> PhysicalDevice:
    return PhysicalDevice(own, "nvidia.com/gpu", physical, gpu, 0, gpu, 0, replicas=count)
