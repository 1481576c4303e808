"""What nodes say about their GPUs, by labels, annotations and amounts, and by their exporter."""

from __future__ import annotations

import pytest

from shoal.api.node_resource_topology import NodeResourceTopology, TopologyAttribute, Zone, ZoneResource
from shoal.devices.layout import Layout
from shoal.engine.device_notation import layout_of_node, layout_with_zones
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

NODE = Where(obj="Node n")

GPU = "nvidia.com/gpu"
PRODUCT = "nvidia.com/gpu.product"
A100 = "NVIDIA-A100-SXM4-80GB"
TIME_SLICED = {"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
MPS = {"nvidia.com/gpu.replicas": "8", "nvidia.com/gpu.sharing-strategy": "mps"}

Words = dict[str, str]

HAMI = (
    '[{"id":"GPU-1","count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-V100","numa":0,"health":true},'
    '{"id":"GPU-2","index":1,"count":10,"devmem":32768,"devcore":100,"type":"NVIDIA-V100","numa":1,"health":true}]'
)

SAID: dict[str, tuple[Words, Words, dict[str, int], int, Layout]] = {
    "nothing": ({}, {}, {}, 0, Layout()),
    "plain GPUs": ({}, {}, {GPU: 8}, 8, Layout()),
    "memory as discovery says it": ({"nvidia.com/gpu.memory": "40960"}, {}, {GPU: 1}, 1, Layout(memory_mib=40960)),
    "time slices": (TIME_SLICED, {}, {GPU: 8}, 2, Layout(replicas=4, sharing="time-slicing")),
    "time slices by a name of their own": (
        TIME_SLICED,
        {},
        {"nvidia.com/gpu.shared": 8},
        2,
        Layout(replicas=4, sharing="time-slicing", renamed=True),
    ),
    "MPS gives one per request": (MPS, {}, {GPU: 16}, 2, Layout(replicas=8, sharing="mps", one_per_request=True)),
    "MPS that was told to give more": (
        MPS,
        {"shoal.dev/fail-requests-greater-than-one": "false"},
        {GPU: 16},
        2,
        Layout(replicas=8, sharing="mps"),
    ),
    "replicas of GPUs that are not shared are none": ({"nvidia.com/gpu.replicas": "1"}, {}, {GPU: 8}, 8, Layout()),
    "28 slices under the single strategy": (
        {**TIME_SLICED, PRODUCT: f"{A100}-MIG-1g.10gb-SHARED"},
        {},
        {GPU: 28},
        7,
        Layout(memory_mib=9728, replicas=4, sharing="time-slicing"),
    ),
    "islands by their size": (
        {"gpu.nvidia.com/nvlink-enabled": "true", "gpu.nvidia.com/nvlink-gpus-per-island": "4"},
        {},
        {GPU: 8},
        8,
        Layout(islands=(0, 0, 0, 0, 1, 1, 1, 1)),
    ),
    "all on one switch": ({"gpu.nvidia.com/nvlink-enabled": "true"}, {}, {GPU: 2}, 2, Layout(islands=(0, 0))),
    "no links at all": ({"gpu.nvidia.com/nvlink-enabled": "false"}, {}, {GPU: 2}, 2, Layout(islands=(0, 1))),
    "islands and NUMA nodes one by one": (
        {},
        {
            "shoal.dev/gpu-islands": "0-1+4-5,2-3",
            "shoal.dev/gpu-numa": "0-2,3-5",
            "shoal.dev/topology-manager-policy": "single-numa-node",
        },
        {GPU: 6},
        6,
        Layout(islands=(0, 0, 1, 1, 0, 0), numa=(0, 0, 0, 1, 1, 1), numa_policy="single-numa-node"),
    ),
    "an annotation before a label": (
        {"shoal.dev/topology-manager-policy": "none"},
        {"shoal.dev/topology-manager-policy": "restricted"},
        {},
        0,
        Layout(numa_policy="restricted"),
    ),
    "HAMi's register": (
        {},
        {"hami.io/node-nvidia-register": HAMI},
        {GPU: 20},
        2,
        Layout(memory_mib=32768, slots=10, numa=(0, 1)),
    ),
    "HAMi's older register, of which one device is ill": (
        {},
        {"hami.io/node-nvidia-register": "GPU-1,5,8192,100,NVIDIA-T4,0,true:GPU-2,5,8192,100,NVIDIA-T4,0,false:"},
        {GPU: 5},
        1,
        Layout(memory_mib=8192, slots=5, numa=(0,)),
    ),
    "a register of which every device is ill": (
        {},
        {"hami.io/node-nvidia-register": "GPU-1,5,8192,100,NVIDIA-T4,0,false:"},
        {GPU: 5},
        0,
        Layout(),
    ),
    "a register that is none": ({}, {"hami.io/node-nvidia-register": "[{"}, {GPU: 2}, 2, Layout()),
    "Volcano's virtual GPUs": (
        {},
        {},
        {"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 65536, "volcano.sh/vgpu-cores": 200},
        2,
        Layout(memory_mib=32768, slots=10),
    ),
    "MIG on demand": (
        {
            PRODUCT: A100,
            "nvidia.com/gpu.count": "2",
            "nvidia.com/gpu.memory": "81920",
            "shoal.dev/mig-layout": "dynamic",
        },
        {},
        {},
        2,
        Layout(memory_mib=81920, mig="A100-80GB", mig_devices=(0, 1)),
    ),
    "MIG on demand, of which one GPU is still in use as a whole": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "2", "shoal.dev/mig-layout": "dynamic"},
        {"shoal.dev/topology": '{"gpus":[{"uuid":"GPU-0"},{"uuid":"GPU-1","mig":[]}]}'},
        {GPU: 1},
        2,
        Layout(memory_mib=81920, mig="A100-80GB", mig_devices=(1,)),
    ),
    "MIG on demand before the node has changed a GPU": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "2", "shoal.dev/mig-layout": "dynamic"},
        {"shoal.dev/topology": '{"gpus":[{"uuid":"GPU-0"},{"uuid":"GPU-1"}]}'},
        {GPU: 2},
        2,
        Layout(memory_mib=81920),
    ),
    "MIG on demand on a node that does not report its GPUs, before it has changed one": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "2", "shoal.dev/mig-layout": "dynamic"},
        {},
        {GPU: 2},
        2,
        Layout(memory_mib=81920),
    ),
    "MIG on demand on a node that reports neither its GPUs nor their number": (
        {PRODUCT: A100, "shoal.dev/mig-layout": "dynamic"},
        {},
        {GPU: 2},
        2,
        Layout(memory_mib=81920),
    ),
    "MIG on demand on a node that does not report its GPUs, of which one is advertised as a whole": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "2", "shoal.dev/mig-layout": "dynamic"},
        {},
        {GPU: 1},
        2,
        Layout(memory_mib=81920, mig="A100-80GB", mig_devices=(1,)),
    ),
    "MIG on demand of listed GPUs that are still advertised as whole ones": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "4"},
        {"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "2-3"},
        {GPU: 4},
        4,
        Layout(memory_mib=81920),
    ),
    "MIG on demand of listed GPUs of which one is still advertised as a whole one": (
        {PRODUCT: A100, "nvidia.com/gpu.count": "4"},
        {"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "2-3"},
        {GPU: 3},
        4,
        Layout(memory_mib=81920, mig="A100-80GB", mig_devices=(3,)),
    ),
    "MIG on demand beside whole GPUs": (
        {PRODUCT: A100, "nvidia.com/gpu.memory": "81920"},
        {"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "2-3"},
        {GPU: 2},
        4,
        Layout(memory_mib=81920, mig="A100-80GB", mig_devices=(2, 3)),
    ),
}


@pytest.mark.parametrize(("labels", "annotations", "allocatable", "gpus", "layout"), SAID.values(), ids=SAID)
def test_said(labels: Words, annotations: Words, allocatable: dict[str, int], gpus: int, layout: Layout) -> None:
    found = layout_of_node(labels, annotations, {**allocatable, "cpu": 1000}, NODE)
    assert (found.gpus, found.layout) == (gpus, layout)
    assert {name for name in found.allocatable if not name.startswith("volcano.sh/")} == {"cpu"}


def test_fixed_instances_stay_counted_and_those_of_a_node_cut_on_demand_do_not() -> None:
    fixed = {"nvidia.com/mig-1g.10gb": 7}
    labels = {PRODUCT: A100, "nvidia.com/gpu.count": "1", "shoal.dev/mig-layout": "dynamic"}
    assert layout_of_node({PRODUCT: A100}, {}, fixed, NODE).allocatable == fixed
    assert layout_of_node(labels, {}, fixed, NODE).allocatable == {}


WRONG: dict[str, tuple[Words, Words, str]] = {
    "memory that is no number": (
        {"nvidia.com/gpu.memory": "40Gi"},
        {},
        'metadata.labels[nvidia.com/gpu.memory]: "40Gi" is not a whole number; write it as plain digits',
    ),
    "a strategy of another kind": (
        {"nvidia.com/gpu.sharing-strategy": "vgpu"},
        {},
        (
            'metadata.labels[nvidia.com/gpu.sharing-strategy]: Unsupported value: "vgpu"; '
            "supported values: none, time-slicing, mps"
        ),
    ),
    "a policy of another kind": (
        {},
        {"shoal.dev/topology-manager-policy": "strict"},
        (
            'metadata.annotations[shoal.dev/topology-manager-policy]: Unsupported value: "strict"; '
            "supported values: none, best-effort, restricted, single-numa-node"
        ),
    ),
    "a device in two islands": (
        {},
        {"shoal.dev/gpu-islands": "0-3,3-5"},
        "metadata.annotations[shoal.dev/gpu-islands]: 3 is in two groups",
    ),
    "a span that ends before it begins": (
        {},
        {"shoal.dev/gpu-numa": "3-0"},
        'metadata.annotations[shoal.dev/gpu-numa]: "3-0" ends before it begins',
    ),
    "MIG on a model without": (
        {PRODUCT: "Tesla-T4", "shoal.dev/mig-layout": "dynamic"},
        {},
        (
            'metadata.labels[shoal.dev/mig-layout]: the GPU model "Tesla-T4" is not known to have MIG; '
            "set the label nvidia.com/gpu.product to a product that has"
        ),
    ),
}


@pytest.mark.parametrize(("labels", "annotations", "message"), WRONG.values(), ids=WRONG)
def test_wrong(labels: Words, annotations: Words, message: str) -> None:
    with pytest.raises(UserError) as told:
        layout_of_node(labels, annotations, {GPU: 4}, NODE)
    assert str(told.value) == f"Node n: {message}"


def zone(name: str, gpus: int, cores: int) -> Zone:
    def resource(what: str, amount: int) -> ZoneResource:
        quantity = Quantity.of(amount)
        return ZoneResource(what, quantity, quantity, quantity)

    return Zone(name, "Node", resources=(resource("cpu", cores), resource(GPU, gpus)))


TOPOLOGY = NodeResourceTopology(
    zones=(zone("node-1", 2, 30), zone("node-0", 2, 32)),
    attributes=(TopologyAttribute("topologyManagerPolicy", "restricted"),),
)


def test_zones_of_the_exporter_number_the_devices() -> None:
    found = layout_with_zones(Layout(), 4, TOPOLOGY)
    assert found == Layout(numa=(0, 0, 1, 1), numa_cores_milli=(32_000, 30_000), numa_policy="restricted")


def test_what_the_node_says_itself_is_believed_before_its_exporter() -> None:
    own = Layout(numa=(1, 0, 1, 0), numa_policy="best-effort")
    found = layout_with_zones(own, 4, TOPOLOGY)
    assert (found.numa, found.numa_policy) == (own.numa, "best-effort")


def test_the_older_words_for_the_policy() -> None:
    older = NodeResourceTopology(topology_policies=("SingleNUMANodePodLevel",))
    assert layout_with_zones(Layout(), 0, older).numa_policy == "single-numa-node"
