"""On an idle fleet a pod takes the cheapest GPU that satisfies it, and a node without GPUs if it requests none."""

from __future__ import annotations

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask, term, where
from build.scenario import Scenario
from shoal.engine.device_demand import Demand, GpuShares, MemoryShares, MigTiles, VirtualGpus
from shoal.engine.pod_mix import PodClass, PodMix, class_of

CPU_NODE = node("cpu").cpu(16)
L4 = node("l4").cpu(4).gpus(1).model("NVIDIA-L4").memory_mib(23034)
A100 = node("a100").cpu(96).gpus(8).model("NVIDIA-A100-SXM4-80GB").memory_mib(81920)
H100 = node("h100").cpu(192).gpus(8).model("NVIDIA-H100-80GB-HBM3").memory_mib(81559)
L4_OF_FOUR = node("l4s").cpu(48).gpus(4).model("NVIDIA-L4").memory_mib(23034)
FLEET = (H100, A100, L4, CPU_NODE)
"""The dearest node has the first rank: without a price the first of equals would be an H100."""

NOTHING_KNOWN = PodMix()
MIXES = {
    "of nothing": NOTHING_KNOWN,
    "of the pod": PodMix.of([PodClass(1000, 1000, 1)]),
    "of shares and a few large pods": PodMix.of([*[PodClass(4000, 500, 1)] * 8, PodClass(64_000, 1000, 2)]),
}


def winner(wanted: AskBuilder, *nodes: NodeBuilder, mix: PodMix = NOTHING_KNOWN) -> str:
    choice = Scenario(*nodes, mix=mix).choice(wanted)
    assert choice is not None
    return choice[0]


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_a_pod_without_gpus_goes_to_the_node_without_gpus(mix: PodMix) -> None:
    assert winner(ask().cpu(1), *FLEET, mix=mix) == "cpu"


def test_a_pod_without_gpus_goes_to_the_cheapest_gpu_node_when_no_other_fits() -> None:
    assert winner(ask().cpu(1), H100, A100, L4) == "l4"
    assert winner(ask().cpu(32), *FLEET) == "a100"


DEMANDS: dict[str, AskBuilder] = {
    "one GPU": ask().cpu(1).gpus(1),
    "one GPU and much CPU": ask().cpu(4).gpus(1),
    "a share": ask().cpu(1).share(250),
    "an odd share": ask().cpu(1).share(333),
}


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
@pytest.mark.parametrize("wanted", DEMANDS.values(), ids=DEMANDS)
def test_a_small_request_goes_to_the_cheapest_model(wanted: AskBuilder, mix: PodMix) -> None:
    assert winner(wanted, *FLEET, mix=mix) == "l4"


OTHER_DEMANDS: dict[str, Demand] = {
    "memory": MemoryShares(1, 8000),
    "shares of several GPUs": GpuShares(1, 500),
    "a virtual GPU": VirtualGpus(1, 4000, 0, 30),
}


@pytest.mark.parametrize("demand", OTHER_DEMANDS.values(), ids=OTHER_DEMANDS)
def test_requests_in_other_units_go_to_the_cheapest_model_too(demand: Demand) -> None:
    assert winner(ask().cpu(1).demand(demand), *FLEET) == "l4"


def test_a_mig_instance_is_taken_on_the_cheaper_model() -> None:
    cut = "nvidia.com/mig-1g.10gb"
    fleet = (H100.resource(cut, 7), A100.resource(cut, 7))
    assert winner(ask().demand(MigTiles((("1g.10gb", 1),))), *fleet) == "a100"


def test_what_the_cheaper_model_cannot_serve_goes_to_the_next() -> None:
    assert winner(ask().cpu(1).gpus(2), *FLEET) == "a100"
    assert winner(ask().demand(MemoryShares(1, 60_000)), *FLEET) == "a100"
    assert winner(ask().gpus(1).model("NVIDIA-H100-80GB-HBM3"), *FLEET) == "h100"
    assert winner(ask().gpus(1), H100, A100, L4.taint("reserved")) == "a100"
    assert winner(ask().gpus(1), H100, A100, L4.cordoned()) == "a100"


def test_the_preference_of_a_pod_comes_before_the_price() -> None:
    fleet = (L4, A100, H100.label("pool", "fast"))
    weak = ask().cpu(1).gpus(1).prefer(1, term(where("pool", "In", "fast"))).prefer(99, term(where("no", "Exists")))
    assert winner(weak, *fleet) == "h100"
    assert winner(ask().cpu(1), H100, CPU_NODE.taint("soft", "PreferNoSchedule")) == "h100"


def test_among_nodes_of_one_price_the_loss_decides() -> None:
    mix = PodMix.of([*[PodClass(4000, 500, 1)] * 4, *[PodClass(64_000, 1000, 4)]])
    fresh, begun = A100, node("begun").cpu(96).gpus(8).model("NVIDIA-A100-SXM4-80GB")
    world = Scenario(H100, fresh, begun, mix=mix)
    world.bind("sharer", ask().cpu(4).share(500), "begun", devices=(3,))
    assert world.choice(ask().cpu(4).share(500)) == ("begun", (3,))


@pytest.mark.parametrize("cpu", [1, 4, 24])
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_pods_on_an_idle_fleet_fill_one_node_before_the_next(cpu: int, gpus: int) -> None:
    wanted = ask().cpu(cpu).gpus(gpus)
    nodes = [node(f"h{at}").cpu(192).gpus(8).model("NVIDIA-H100-80GB-HBM3") for at in range(8)]
    world = Scenario(*nodes, mix=PodMix.of([class_of(wanted.made())] * (16 // gpus)))
    for at in range(16 // gpus):
        world.arrive(f"pod-{at}", wanted)
    world.confirm(world.round())
    assert len(world.placed()) == 16 // gpus
    assert len({*world.placed().values()}) == 2


def test_a_node_in_use_does_not_outweigh_the_price() -> None:
    world = Scenario(A100, H100, mix=MIXES["of the pod"])
    world.bind("runs", ask().cpu(1).gpus(1), "h100", devices=(0,))
    assert world.choice(ask().cpu(1).gpus(1)) == ("a100", (0,))


BEGUN = ask().cpu(2).share(600)
SHARE = ask().cpu(2).share(400)
LARGE = ask().cpu(64).gpus(8)


def half_used(mix: PodMix) -> Scenario:
    """Eight empty GPUs of the cheaper model, and eight of the dearer that have room for one more share each."""
    world = Scenario(A100, H100, node("full").cpu(192).gpus(8).model("NVIDIA-H100-80GB-HBM3"), mix=mix)
    for device in range(8):
        world.bind(f"begun-{device}", BEGUN, "h100", devices=(device,))
    return world


def test_on_an_idle_fleet_the_price_decides_and_on_a_loaded_one_the_loss() -> None:
    mix = PodMix.of([class_of(SHARE.made()), class_of(LARGE.made())])
    world = half_used(mix)
    assert world.choice(SHARE) == ("a100", (0,))
    world.bind("large", LARGE, "full", devices=tuple(range(8)))
    assert world.choice(SHARE) == ("h100", (0,))
    world.go("large")
    assert world.choice(SHARE) == ("a100", (0,))


def test_the_loss_decides_as_soon_as_the_mix_requests_more_than_half_of_the_fleet() -> None:
    classes = [class_of(SHARE.made()), class_of(LARGE.made())]
    assert half_used(PodMix.of(classes)).choice(SHARE) == ("a100", (0,))
    assert half_used(PodMix.of(classes * 2)).choice(SHARE) == ("h100", (0,))


def test_without_a_mix_the_price_decides_on_a_loaded_fleet_too() -> None:
    world = half_used(NOTHING_KNOWN).bind("large", LARGE, "full", devices=tuple(range(8)))
    assert world.choice(SHARE) == ("a100", (0,))


def test_keys_that_follow_a_fleet_across_the_limit_equal_fresh_ones() -> None:
    world = half_used(PodMix.of([class_of(SHARE.made()), class_of(LARGE.made())]))
    for step in range(4):
        for wanted in (SHARE, ask().cpu(1)):
            assert world.shape(wanted).keys().tolist() == world.fresh_shape(wanted).keys().tolist()
        if step % 2:
            world.go("large")
        else:
            world.bind("large", LARGE, "full", devices=tuple(range(8)))


def test_pods_without_gpus_prefer_nodes_without_gpus_on_a_loaded_fleet_too() -> None:
    mix = PodMix.of([*[PodClass(2000, 0, 0)] * 5, *[PodClass(2000, 1000, 1)] * 16])
    world = Scenario(H100, A100, CPU_NODE, mix=mix)
    for name in ("h100", "a100"):
        world.bind(name, ask().cpu(2).gpus(8), name, devices=tuple(range(8)))
    assert world.choice(ask().cpu(2)) == ("cpu", ())


def test_a_model_that_some_pods_need_is_left_to_them_if_the_others_could_fill_it() -> None:
    pinned = ask().cpu(1).gpus(1).model("NVIDIA-L4")
    free = ask().cpu(1).gpus(1)
    few = PodMix.of([class_of(pinned.made()), *[class_of(free.made())] * 2])
    assert winner(free, *FLEET, mix=few) == "a100"
    assert winner(pinned, *FLEET, mix=few) == "l4"
    assert winner(free, *FLEET, L4_OF_FOUR, mix=few) in {"l4", "l4s"}


def test_a_node_that_reports_its_gpus_later_is_no_longer_one_without_gpus() -> None:
    world = Scenario(node("new").cpu(16), node("plain").cpu(16))
    assert world.choice(ask().cpu(1)) == ("new", ())
    world.see(node("new").cpu(16).gpus(4))
    assert world.choice(ask().cpu(1)) == ("plain", ())
    world.see(node("new").cpu(16))
    assert world.choice(ask().cpu(1)) == ("new", ())


def test_the_memory_and_the_machine_type_place_a_model_that_is_unknown() -> None:
    small = node("small").gpus(1).model("Fantasy-1").label("nvidia.com/gpu.memory", "16384")
    assert winner(ask().gpus(1), A100, small) == "small"
    large = node("large").gpus(1).model("Fantasy-2").label("nvidia.com/gpu.memory", "294912")
    assert winner(ask().gpus(1), large, H100) == "h100"
    unlabelled = node("unlabelled").gpus(1).label("node.kubernetes.io/instance-type", "g6.xlarge")
    assert winner(ask().gpus(1), A100, unlabelled) == "unlabelled"
    nonsense = node("nonsense").gpus(1).model("Fantasy-3").label("nvidia.com/gpu.memory", "²4")
    assert winner(ask().gpus(1), H100, nonsense) == "nonsense"


def test_a_machine_with_gpus_of_another_vendor_is_no_node_without_gpus() -> None:
    amd = node("amd").cpu(96).label("node.kubernetes.io/instance-type", "Standard_ND96isr_MI300X_v5")
    general = node("general").cpu(8).label("node.kubernetes.io/instance-type", "m7i.2xlarge")
    assert winner(ask().cpu(1), amd, general) == "general"
