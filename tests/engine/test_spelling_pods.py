"""What pods write about devices, in the words of several ecosystems, and which of it contradicts itself."""

from __future__ import annotations

import pytest

from shoal.engine.device_demand import (
    Demand,
    GpuShare,
    GpuShares,
    MemoryShares,
    MigTiles,
    Replicas,
    VirtualGpus,
    WholeGpus,
)
from shoal.engine.device_notation import HeldDevices, devices_of_pod, positions_of_pod, profile_fault
from shoal.units.errors import UserError, Where

POD = Where(obj="Pod team-a/train")

GPU = "nvidia.com/gpu"
MEM = "nvidia.com/gpumem"
PERCENT = "nvidia.com/gpumem-percentage"
CORES = "nvidia.com/gpucores"

READ: dict[str, tuple[dict[str, str], dict[str, int], Demand | None]] = {
    "nothing": ({}, {"cpu": 1000}, None),
    "whole GPUs": ({}, {GPU: 2}, WholeGpus(2)),
    "replicas by their own name": ({}, {"nvidia.com/gpu.shared": 2}, Replicas(2)),
    "MIG profiles": (
        {},
        {"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 1},
        MigTiles((("1g.10gb", 2), ("3g.40gb", 1))),
    ),
    "renamed MIG replicas are counted and nothing more": ({}, {"nvidia.com/mig-1g.10gb.shared": 2}, None),
    "one island": ({"shoal.dev/gpu-island": "required"}, {GPU: 4}, WholeGpus(4, island=True)),
    "an island if there is one": ({"shoal.dev/gpu-island": "preferred"}, {GPU: 4}, WholeGpus(4)),
    "one NUMA node": ({"shoal.dev/gpu-numa": "required"}, {GPU: 4}, WholeGpus(4, numa=True)),
    "a fraction": ({"gpu-fraction": "0.5"}, {}, GpuShare(500)),
    "a fraction finer than thousandths is rounded to the nearest": ({"gpu-fraction": "0.3333"}, {}, GpuShare(333)),
    "a crumb is never nothing": ({"gpu-fraction": "1e-9"}, {}, GpuShare(1)),
    "the whole as a fraction": ({"gpu-fraction": "1"}, {}, WholeGpus(1)),
    "fractions of several devices": (
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"},
        {},
        GpuShares(2, 500),
    ),
    "memory": ({"gpu-memory": "2000"}, {}, MemoryShares(1, 2000)),
    "memory of several devices": ({"gpu-memory": "2000", "gpu-fraction-num-devices": "3"}, {}, MemoryShares(3, 2000)),
    "a virtual GPU by memory": ({}, {GPU: 1, MEM: 3000}, VirtualGpus(1, mib=3000)),
    "a virtual GPU by percent and cores": ({}, {GPU: 2, PERCENT: 50, CORES: 30}, VirtualGpus(2, 0, 50, 30)),
    "cores alone are all the memory": ({}, {GPU: 1, CORES: 30}, VirtualGpus(1, cores_percent=30)),
    "memory alone is one device": ({}, {MEM: 3000}, VirtualGpus(1, mib=3000)),
    "Volcano's virtual GPUs": (
        {},
        {"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory": 1024, "volcano.sh/vgpu-cores": 20},
        VirtualGpus(2, mib=1024, cores_percent=20),
    ),
    "Volcano's number alone": ({}, {"volcano.sh/vgpu-number": 1}, VirtualGpus(1)),
}


@pytest.mark.parametrize(("annotations", "requests", "demand"), READ.values(), ids=READ)
def test_read(annotations: dict[str, str], requests: dict[str, int], demand: Demand | None) -> None:
    left = dict(requests)
    assert devices_of_pod(annotations, left, POD) == demand
    counted = {name: amount for name, amount in requests.items() if name == "cpu" or name.startswith("nvidia.com/mig-")}
    assert left == counted, "devices are taken out of what is counted, MIG instances excepted"


def test_amounts_per_device_are_those_of_one_container() -> None:
    containers = [{GPU: 1, MEM: 3000}, {"cpu": 1}, {GPU: 1, MEM: 3000}]
    assert devices_of_pod({}, {GPU: 2, MEM: 6000}, POD, containers) == VirtualGpus(2, mib=3000)


REFUSED: dict[str, tuple[dict[str, str], dict[str, int], str]] = {
    "a fraction beside whole GPUs": (
        {"gpu-fraction": "0.5"},
        {GPU: 1},
        "metadata.annotations[gpu-fraction]: contradicts the request of 1 nvidia.com/gpu; ask in one of the two ways",
    ),
    "memory beside MIG": (
        {"gpu-memory": "100"},
        {"nvidia.com/mig-1g.10gb": 1},
        (
            "metadata.annotations[gpu-memory]: contradicts the request of 1 nvidia.com/mig-1g.10gb; "
            "ask in one of the two ways"
        ),
    ),
    "a fraction and memory": (
        {"gpu-fraction": "0.5", "gpu-memory": "100"},
        {},
        "metadata.annotations: gpu-fraction and gpu-memory contradict each other; ask in one of the two ways",
    ),
    "a fraction of nothing": (
        {"gpu-fraction": "0"},
        {},
        (
            'metadata.annotations[gpu-fraction]: must be more than 0 and at most 1, got "0"; '
            "ask for several whole GPUs with nvidia.com/gpu"
        ),
    ),
    "a fraction above one": (
        {"gpu-fraction": "1.5"},
        {},
        (
            'metadata.annotations[gpu-fraction]: must be more than 0 and at most 1, got "1.5"; '
            "ask for several whole GPUs with nvidia.com/gpu"
        ),
    ),
    "a fraction that is no number": (
        {"gpu-fraction": "half"},
        {},
        'metadata.annotations[gpu-fraction]: "half" is not a number; write e.g. "0.5"',
    ),
    "a fraction that is not finite": (
        {"gpu-fraction": "NaN"},
        {},
        (
            'metadata.annotations[gpu-fraction]: must be more than 0 and at most 1, got "NaN"; '
            "ask for several whole GPUs with nvidia.com/gpu"
        ),
    ),
    "memory with a unit": (
        {"gpu-memory": "4Gi"},
        {},
        'metadata.annotations[gpu-memory]: "4Gi" is not a whole number; write it as plain digits',
    ),
    "no memory": ({"gpu-memory": "0"}, {}, "metadata.annotations[gpu-memory]: must be at least 1, got 0"),
    "on no device": (
        {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"},
        {},
        "metadata.annotations[gpu-fraction-num-devices]: must be at least 1, got 0",
    ),
    "devices without an amount": (
        {"gpu-fraction-num-devices": "2"},
        {GPU: 2},
        (
            "metadata.annotations[gpu-fraction-num-devices]: says on how many devices, but not how much: "
            "neither gpu-fraction nor gpu-memory"
        ),
    ),
    "whole GPUs and MIG": (
        {},
        {GPU: 1, "nvidia.com/mig-1g.10gb": 1},
        "spec.containers: nvidia.com/gpu and nvidia.com/mig-1g.10gb contradict each other; ask in one of the two ways",
    ),
    "memory twice": (
        {},
        {GPU: 1, MEM: 100, PERCENT: 10},
        (
            "spec.containers: nvidia.com/gpumem and nvidia.com/gpumem-percentage contradict each other; "
            "ask in one of the two ways"
        ),
    ),
    "HAMi's and Volcano's words": (
        {},
        {"volcano.sh/vgpu-number": 1, MEM: 100},
        (
            "spec.containers: volcano.sh/vgpu-number and nvidia.com/gpumem contradict each other; "
            "ask in one of the two ways"
        ),
    ),
    "more than all cores": (
        {},
        {GPU: 1, CORES: 101},
        "spec.containers[nvidia.com/gpucores]: must be at most 100, got 101",
    ),
    "an insistence of another kind": (
        {"shoal.dev/gpu-island": "please"},
        {GPU: 2},
        (
            'metadata.annotations[shoal.dev/gpu-island]: Unsupported value: "please"; '
            "supported values: required, preferred"
        ),
    ),
    "more GPUs than any node has": (
        {},
        {GPU: 1025},
        "spec.containers: 1025 of nvidia.com/gpu: no node has that many; at most 1024 are read",
    ),
}


@pytest.mark.parametrize(("annotations", "requests", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(annotations: dict[str, str], requests: dict[str, int], message: str) -> None:
    with pytest.raises(UserError) as told:
        devices_of_pod(annotations, dict(requests), POD)
    assert str(told.value) == f"Pod team-a/train: {message}"


def test_containers_with_virtual_gpus_of_different_size_are_refused() -> None:
    with pytest.raises(UserError, match="different size"):
        devices_of_pod({}, {GPU: 2, MEM: 300}, POD, [{GPU: 1, MEM: 100}, {GPU: 1, MEM: 200}])


PRODUCTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "a profile of a GPU present": ("1g.10gb", ("NVIDIA-A100-SXM4-80GB", "Tesla-T4"), ""),
    "a profile under the single strategy": ("1g.10gb", ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED",), ""),
    "a profile of a GPU that is not there": ("1g.10gb", ("NVIDIA-A30",), "there are 1g.6gb, 1g.6gb.me, 2g.12gb"),
    "GPUs without MIG": ("1g.10gb", ("Tesla-T4",), "none of them can be cut into instances"),
    "a profile of no GPU": ("9g.99gb", (), "is not a MIG profile of any GPU"),
    "a GPU that no table knows may have it": ("1g.10gb", ("Tesla-T4", "NVIDIA-X9000"), ""),
    "no GPU at all is no mistake": ("1g.10gb", (), ""),
}


@pytest.mark.parametrize(("profile", "products", "told"), PRODUCTS.values(), ids=PRODUCTS)
def test_profiles(profile: str, products: tuple[str, ...], told: str) -> None:
    fault = profile_fault(profile, products, POD)
    assert (told in str(fault)) if told else fault is None


class TestHeldDevices:
    def test_numbers_and_places(self) -> None:
        assert positions_of_pod({"shoal.dev/devices": "0, 3"}, POD) == ((0, 0), (3, 0))

    @pytest.mark.parametrize("text", ["0," * 1024 + "0", "9" * 70_000, "{" + " " * 70_000 + "}", "9" * 5_000])
    def test_more_than_the_devices_of_any_node_is_refused(self, text: str) -> None:
        with pytest.raises(UserError):
            positions_of_pod({"shoal.dev/devices": text}, POD)
        assert positions_of_pod({"shoal.dev/devices": "1:4,0:0"}, POD) == ((1, 4), (0, 0))
        assert positions_of_pod({}, POD) == ()

    def test_a_word_that_is_no_number(self) -> None:
        with pytest.raises(UserError, match="not a whole number"):
            positions_of_pod({"shoal.dev/devices": "GPU-1"}, POD)

    def test_pods_of_one_name_share_a_device_and_others_do_not(self) -> None:
        held = HeldDevices()
        held.reserve("n", ((0, 0),))
        assert held.positions("n", {}, {"runai-gpu-group": "a"}) == ((1, 0),)
        assert held.positions("n", {}, {"runai-gpu-group": "b"}) == ((2, 0),)
        assert held.positions("n", {}, {"runai-gpu-group": "a"}) == ((1, 0),)
        assert held.positions("m", {}, {"runai-gpu-group": "b"}) == ((0, 0),)

    def test_several_devices_of_one_pod(self) -> None:
        held = HeldDevices()
        assert held.positions("n", {}, {"runai-gpu-group/a": "a", "runai-gpu-group/b": "b"}) == ((0, 0), (1, 0))
        given = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,3000,30:GPU-2,NVIDIA,3000,30:;"}
        assert held.positions("m", given, {}) == ((0, 0), (1, 0))
