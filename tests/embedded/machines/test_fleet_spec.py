"""A fleet written in one line: what comes of it, and what is said of a line that makes no sense."""

from __future__ import annotations

import re

import pytest

from shoal.data.instances import catalog
from shoal.embedded.machines.fleet_spec import read_fleet
from shoal.embedded.machines.gpu_software import GpuSoftware
from shoal.embedded.machines.on_premises import boxes
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

DNS = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
UNIQUE = ("uuid", "pci", "serial")


def test_entries_are_counted_named_and_in_order() -> None:
    names = [one.name for one in read_fleet("2xp5.48xlarge, dgx-a100-80, 1xaws/p5.48xlarge, 2xcpu-8[name=web]")]
    assert names == ["p5-48xlarge-0", "p5-48xlarge-1", "dgx-a100-80-0", "p5-48xlarge-2", "web-0", "web-1"]


def test_the_same_line_gives_the_same_machines() -> None:
    line = "3xp4d.24xlarge[mig=all-1g.5gb],2xg5.12xlarge[time-slicing=4,spot]"
    assert read_fleet(line) == read_fleet(line)


@pytest.mark.parametrize("name", [*boxes(), *(one.name for one in catalog().instances)])
def test_every_machine_of_the_catalogue_can_be_built(name: str) -> None:
    (machine,) = read_fleet(name)
    assert DNS.fullmatch(machine.name)
    assert all(LABEL.fullmatch(value) for value in machine.labels.values())
    for resource, amount in machine.allocatable.items():
        assert 0 <= Quantity.parse(amount).nano <= Quantity.parse(machine.capacity[resource]).nano
    for field in UNIQUE:
        values = [getattr(gpu, field) for gpu in machine.gpus]
        assert len(set(values)) == len(values)


def test_an_eight_gpu_machine_is_wired_as_the_real_one() -> None:
    (machine,) = read_fleet("p5.48xlarge")
    assert {gpu.island for gpu in machine.gpus} == {0}
    assert [gpu.numa for gpu in machine.gpus] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert machine.capacity["vpc.amazonaws.com/efa"] == "32"
    assert machine.gpus[0].product == "NVIDIA-H100-80GB-HBM3"
    assert machine.usd_per_hour == 55.04


@pytest.mark.parametrize(
    ("name", "linked", "size"),
    [("p5.48xlarge", "true", "8"), ("g5.12xlarge", "false", None), ("g5.xlarge", "false", None), ("cpu-8", None, None)],
)
def test_nodes_are_labelled_by_how_their_gpus_are_linked(name: str, linked: str | None, size: str | None) -> None:
    (machine,) = read_fleet(name)
    assert machine.labels.get("gpu.nvidia.com/nvlink-enabled") == linked
    assert machine.labels.get("gpu.nvidia.com/nvlink-gpus-per-island") == size


def test_gpus_of_another_maker_are_counted_and_not_modelled() -> None:
    (machine,) = read_fleet("Standard_ND96isr_MI300X_v5")
    assert machine.gpus == ()
    assert machine.capacity["amd.com/gpu"] == "8"


def test_neighbours_share_a_rack_and_racks_spread_over_zones() -> None:
    machines = read_fleet("16xp5.48xlarge")
    racks = [one.labels["cloud.provider.com/topology-rack"] for one in machines]
    assert [len({*racks[i : i + 4]}) for i in range(0, 16, 4)] == [1, 1, 1, 1]
    assert len(set(racks)) == 4
    assert len({one.labels["topology.kubernetes.io/zone"] for one in machines}) == 3
    zone_of_rack = {
        (one.labels["topology.kubernetes.io/zone"], rack) for one, rack in zip(machines, racks, strict=True)
    }
    assert len(zone_of_rack) == 4


def test_machines_of_two_entries_share_no_rack() -> None:
    racks = [one.labels["cloud.provider.com/topology-rack"] for one in read_fleet("p5.48xlarge,dgx-h100[zone=z1]")]
    assert len(set(racks)) == 2


def test_trays_of_one_rack_are_one_nvlink_domain() -> None:
    cliques = [one.fabric for one in read_fleet("36xgb200-nvl72-tray")]
    assert [len(set(cliques[:18])), len(set(cliques[18:])), len(set(cliques))] == [1, 1, 2]


def test_spot_is_cheaper_and_says_so() -> None:
    plain, spot = read_fleet("g5.12xlarge,g5.12xlarge[spot]")
    assert 0 < spot.usd_per_hour < plain.usd_per_hour
    assert (plain.labels["karpenter.sh/capacity-type"], spot.labels["karpenter.sh/capacity-type"]) == (
        "on-demand",
        "spot",
    )
    (own,) = read_fleet("dgx-a100-80[spot]")
    assert own.labels["karpenter.sh/capacity-type"] == "spot"


def test_options_say_how_gpus_are_cut_and_shared() -> None:
    line = "p4d.24xlarge[mig=all-1g.5gb,strategy=single],g5.12xlarge[mps=8,rename],t4-box-4[time-slicing=4,taint]"
    cut, mps, sliced = read_fleet(line)
    assert (cut.mig_config, cut.mig_strategy, cut.sharing) == ("all-1g.5gb", "single", None)
    assert mps.sharing is not None
    assert sliced.sharing is not None
    assert (mps.sharing.strategy, mps.sharing.rename, mps.sharing.fail_requests_greater_than_one) == ("mps", True, True)
    assert (sliced.sharing.replicas, sliced.sharing.fail_requests_greater_than_one) == (4, False)
    assert sliced.taints[0]["key"] == "nvidia.com/gpu"


def test_an_option_gives_the_gpus_to_claims_and_may_create_instances_for_them() -> None:
    fixed, dynamic, ampere = read_fleet("dgx-h100[dra],dgx-h100[dra,mig=dynamic],dgx-a100-80[dra,mig=dynamic]")
    assert (fixed.gives_by_claims, fixed.has_dynamic_mig) == (True, False)
    assert (dynamic.gives_by_claims, dynamic.has_dynamic_mig, dynamic.mig_config) == (True, True, "")
    # The label would let the scheduler choose instances by the device plugin too.
    assert "shoal.dev/mig-layout" not in dynamic.labels
    # Its GPUs would need a reset to be divided.
    assert ampere.mig_config == "all-enabled"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("p5.48xlrge", '"p5.48xlrge" is not a machine of the catalogue; did you mean p5.48xlarge'),
        ("dgx-h10", "did you mean dgx-h100"),
        ("8x", "is not a machine"),
        ("", "an entry is empty"),
        ("p5.48xlarge,,dgx-h100", "an entry is empty"),
        ("p5.48xlarge[mig", "is not a machine"),
        ("0xp5.48xlarge", "0 machines; 1 to 100000"),
        ("99999999999999999999xcpu-8", "1 to 100000"),
        ("60000xcpu-8,60000xcpu-64", "120000 machines; at most 100000"),
        ("dgx-h100[mig=all-1g.5gb]", "not possible on 8 x H100-SXM5-80GB; possible: all-disabled"),
        ("g5.xlarge[mig=all-1g.5gb]", "possible: none, it has no MIG"),
        ("dgx-h100[mgi=all-1g.10gb]", "did you mean mig"),
        ("dgx-h100[mig]", "mig has no value"),
        ("dgx-h100[spot=yes]", "spot takes no value"),
        ("dgx-h100[spot,spot]", "spot is given twice"),
        ("dgx-h100[strategy=both]", "unknown MIG strategy"),
        ("dgx-h100[time-slicing=1]", "2 to 1024 are possible"),
        ("dgx-h100[time-slicing=many]", "is not a number of replicas"),
        ("dgx-h100[mps=100]", "2 to 48 are possible"),
        ("dgx-h100[mps=2,time-slicing=2]", "exclude each other"),
        ("dgx-h100[mps=2,mig=all-1g.10gb]", "MPS does not share MIG instances"),
        ("dgx-h100[rename]", "rename without time-slicing or mps"),
        ("dgx-h100[name=Big_One]", "cannot begin a node's name"),
        ("dgx-h100[numa-policy=strict]", "unknown policy"),
        ("cpu-8[mig=all-disabled]", "has no GPU of NVIDIA"),
        ("cpu-8[dra]", "has no GPU of NVIDIA for claims"),
        ("dgx-h100[dra,mps=2]", "settings of the device plugin, which does not run with dra"),
        ("dgx-h100[dra,strategy=mixed]", "settings of the device plugin, which does not run with dra"),
        ("nowhere.yaml", "cannot be read"),
    ],
)
def test_a_line_that_makes_no_sense_is_told_what_would(line: str, told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_fleet(line)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fleet", "software"),
    [
        ("p5.48xlarge", "included", "included"),
        ("p5.48xlarge", "pods", "pods"),
        ("p5.48xlarge[gpu-software=driver]", "pods", "driver"),
        ("p5.48xlarge[gpu-software=driver+toolkit]", "included", "driver+toolkit"),
        ("p5.48xlarge[gpu-software=included]", "pods", "included"),
    ],
)
def test_a_machine_has_the_gpu_software_of_its_option_else_that_of_the_fleet(
    text: str, fleet: GpuSoftware, software: str
) -> None:
    assert [one.gpu_software for one in read_fleet(text, fleet)] == [software]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("p5.48xlarge[gpu-software=none]", 'unknown GPU software "none"'),
        ("p5.48xlarge[gpu-software=pods,dra]", "gpu-software=pods does not go with dra"),
    ],
)
def test_gpu_software_that_cannot_be_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_fleet(text)
