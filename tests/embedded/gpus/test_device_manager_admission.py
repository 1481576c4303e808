"""Which devices a pod gets, and the kubelet's words where it gets none."""

from __future__ import annotations

import pytest

from build.gpu_pods import (
    GPU,
    config_map,
    container,
    device_manager,
    gpu_pod,
    gpus_of,
    granted,
    pod_of,
    refused,
    status_of,
)
from shoal.devices.pod_refusal import Refused
from shoal.embedded.gpus.node_gpus import ExtendedResourceAmounts

UNEXPECTED = "UnexpectedAdmissionError"
MIG = "nvidia.com/mig-1g.10gb"


def test_a_pod_gets_as_many_devices_as_it_asks_for_and_sees_them() -> None:
    node = device_manager("p5.48xlarge")
    (grant,) = granted(node.admit(gpu_pod("a", 2)))
    assert grant.device_ids == tuple(node.machine.gpus[index].uuid for index in grant.gpus)
    assert grant.environment == {"NVIDIA_VISIBLE_DEVICES": ",".join(grant.device_ids)}


def test_whole_gpus_of_one_pod_lie_on_one_numa_node_and_leave_the_other_whole() -> None:
    node = device_manager("p5.48xlarge")
    assert gpus_of(node.admit(gpu_pod("a", 2))) == [0, 1]
    assert gpus_of(node.admit(gpu_pod("b", 2))) == [2, 3]
    assert gpus_of(node.admit(gpu_pod("c", 4))) == [4, 5, 6, 7]


def test_pairs_over_a_bridge_stay_together() -> None:
    node = device_manager("h100-nvl-box-4")
    assert gpus_of(node.admit(gpu_pod("a", 1))) == [0]
    assert gpus_of(node.admit(gpu_pod("b", 2))) == [2, 3]
    assert gpus_of(node.admit(gpu_pod("c", 1))) == [1]


def test_too_many_are_refused_in_the_kubelets_words() -> None:
    node = device_manager("g5.12xlarge")
    node.admit(gpu_pod("a", 3))
    assert node.admit(gpu_pod("b", 2)) == Refused(
        UNEXPECTED,
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
        "Requested: 2, Available: 1, which is unexpected",
    )
    assert gpus_of(node.admit(gpu_pod("c", 1))) == [3]


def test_a_pod_that_fails_half_way_holds_nothing() -> None:
    node = device_manager("g5.12xlarge")
    refused(node.admit(pod_of("a", [container("one", 3), container("two", 2)])))
    assert gpus_of(node.admit(gpu_pod("b", 4))) == [0, 1, 2, 3]


def test_where_every_gpu_is_broken_the_kubelet_says_so() -> None:
    node = device_manager("g5.xlarge")
    node.fail(0, 79)
    said = refused(node.admit(gpu_pod("a")))
    assert said.message == (
        "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, "
        "which is unexpected"
    )


def test_a_pod_whose_gpu_broke_is_not_admitted_again() -> None:
    node = device_manager("p5.48xlarge")
    pod = gpu_pod("a")
    first = granted(node.admit(pod))
    assert node.admit(pod) == first
    node.fail(first[0].gpus[0], 48)
    assert refused(node.admit(pod)).message.startswith(
        "Allocate failed due to previously allocated devices are no longer healthy; cannot allocate unhealthy devices"
    )


def test_a_resource_that_the_node_never_had_is_not_looked_at() -> None:
    assert granted(device_manager("g5.xlarge").admit(gpu_pod("a", 1, MIG))) == ()


def test_a_resource_that_is_gone_is_refused() -> None:
    node = device_manager("dgx-a100-80[mig=all-1g.10gb]")
    node.configure({"nvidia.com/mig.config": "all-disabled"}, {})
    assert node.resources() == {GPU: ExtendedResourceAmounts(8, 8), MIG: ExtendedResourceAmounts(0, 0)}
    assert "no healthy devices present" in refused(node.admit(gpu_pod("a", 1, MIG))).message


def test_init_containers_hand_their_devices_on_and_sidecars_keep_them() -> None:
    passing = [container("fetch", 2), container("warm", 1)]
    found = granted(device_manager("p5.48xlarge").admit(pod_of("a", [container("main", 3)], passing)))
    fetch, warm, main = found
    assert set(warm.device_ids) < set(fetch.device_ids) < set(main.device_ids)
    staying = [container("side", 2, restartPolicy="Always")]
    side, main = granted(device_manager("p5.48xlarge").admit(pod_of("a", [container("main", 3)], staying)))
    assert not set(side.device_ids) & set(main.device_ids)


def test_only_what_init_containers_leave_open_counts_as_missing() -> None:
    node = device_manager("g5.12xlarge")
    node.admit(gpu_pod("a", 1))
    message = refused(node.admit(pod_of("b", [container("main", 4)], [container("fetch", 1)]))).message
    assert "Requested: 3, Available: 2" in message


def test_replicas_are_spread_over_gpus_first() -> None:
    node = device_manager("g5.12xlarge[time-slicing=2]")
    gpus = [gpus_of(node.admit(gpu_pod(str(number))))[0] for number in range(8)]
    assert sorted(gpus[:4]) == sorted(gpus[4:]) == [0, 1, 2, 3]


def test_replicas_are_packed_where_the_plugin_is_told_so() -> None:
    node = device_manager("g5.12xlarge")
    text = (
        "version: v1\nflags: {plugin: {sharedDevicesAllocationPolicy: packed}}\n"
        "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
    )
    node.configure({"nvidia.com/device-plugin.config": "x"}, {"a/b": config_map(x=text)})
    assert [gpus_of(node.admit(gpu_pod(str(number))))[0] for number in range(4)] == [0, 0, 1, 1]


def test_two_replicas_of_one_gpu_are_one_device_inside() -> None:
    (grant,) = granted(device_manager("g5.xlarge[time-slicing=4]").admit(gpu_pod("a", 2)))
    assert len(grant.device_ids) == 2
    assert grant.environment["NVIDIA_VISIBLE_DEVICES"].count("GPU-") == 1


def test_two_shared_gpus_at_once_are_refused_by_the_plugin_where_it_is_set_to() -> None:
    said = refused(device_manager("g5.12xlarge[time-slicing=4,one-per-request]").admit(gpu_pod("a", 2)))
    assert said == Refused(
        UNEXPECTED,
        "Allocate failed due to rpc error: code = Unknown desc = invalid request: "
        "maximum request size for shared resources is 1; found 2, which is unexpected",
    )
    granted(device_manager("g5.12xlarge[mps=4,many-per-request]").admit(gpu_pod("a", 2)))


def test_mps_clients_find_their_server() -> None:
    (grant,) = granted(device_manager("g5.12xlarge[mps=4]").admit(gpu_pod("a")))
    assert grant.environment["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu/pipe"


@pytest.mark.parametrize(
    ("policy", "busy", "asked", "found"),
    [
        ("none", 3, 4, True),
        ("best-effort", 3, 4, True),
        ("restricted", 3, 2, True),
        ("restricted", 2, 4, True),
        ("single-numa-node", 0, 4, True),
        ("single-numa-node", 0, 5, False),
        ("restricted", 0, 5, True),
        ("single-numa-node", 0, 9, False),
        ("best-effort", 0, 9, False),
    ],
)
def test_the_topology_manager_admits_what_its_policy_allows(policy: str, busy: int, asked: int, found: bool) -> None:
    node = device_manager(f"p5.48xlarge[numa-policy={policy}]")
    if busy:
        node.admit(gpu_pod("busy", busy))
    assert isinstance(node.admit(gpu_pod("a", asked)), Refused) != found


def test_a_spread_that_the_empty_machine_would_not_need_is_a_topology_affinity_error() -> None:
    node = device_manager("p5.48xlarge[numa-policy=restricted]")
    node.admit(gpu_pod("a", 3))
    node.admit(gpu_pod("b", 3))
    said = refused(node.admit(gpu_pod("c", 2)))
    assert said == Refused("TopologyAffinityError", "Resources cannot be allocated with Topology locality")


def test_the_policy_may_come_by_label() -> None:
    node = device_manager("p5.48xlarge")
    node.configure({"shoal.dev/topology-manager-policy": "single-numa-node"}, {})
    assert refused(node.admit(gpu_pod("a", 5))).reason == "TopologyAffinityError"


def test_devices_may_be_chosen_by_number_or_by_name() -> None:
    node = device_manager("p5.48xlarge")
    assert gpus_of(node.admit(gpu_pod("a", 2, devices="5,2"))) == [2, 5]
    uuid = node.machine.gpus[7].uuid
    assert gpus_of(node.admit(gpu_pod("b", 1, devices=f'{{"main":{{"{GPU}":["{uuid}"]}}}}'))) == [7]
    assert gpus_of(node.admit(gpu_pod("d", 1, devices="what?"))) == [0]


def test_a_chosen_gpu_that_another_pod_holds_is_replaced_by_a_free_one() -> None:
    node = device_manager("p5.48xlarge")
    held, free = node.machine.gpus[5].uuid, node.machine.gpus[1].uuid
    node.admit(gpu_pod("a", 2, devices="5,2"))
    assert gpus_of(node.admit(gpu_pod("b", 2, devices=f'{{"main":{{"{GPU}":["{held}","{free}"]}}}}'))) == [0, 1]
    assert gpus_of(node.admit(gpu_pod("c", 1, devices="2"))) == [3]


def test_a_chosen_gpu_that_the_node_does_not_have_or_that_is_broken_is_refused() -> None:
    node = device_manager("p5.48xlarge")
    node.fail(5, 79)
    assert "not available: 5" in refused(node.admit(gpu_pod("a", 1, devices="5"))).message
    named = f'{{"main":{{"{GPU}":["GPU-elsewhere"]}}}}'
    assert "not available: GPU-elsewhere" in refused(node.admit(gpu_pod("b", 1, devices=named))).message


def test_containers_side_by_side_may_not_name_one_gpu() -> None:
    node = device_manager("p5.48xlarge")
    uuid = node.machine.gpus[5].uuid
    named = f'{{"one":{{"{GPU}":["{uuid}"]}},"two":{{"{GPU}":["{uuid}"]}}}}'
    pod = pod_of("a", [container("one", 1), container("two", 1)])
    pod["metadata"]["annotations"] = {"shoal.dev/devices": named}
    assert f"not available: {uuid}" in refused(node.admit(pod)).message


def test_a_chosen_mig_instance_that_another_pod_holds_is_refused() -> None:
    node = device_manager("dgx-a100-80[mig=all-1g.10gb]")
    node.admit(gpu_pod("a", 1, MIG, devices="3:4"))
    assert "not available: 3:4" in refused(node.admit(gpu_pod("b", 1, MIG, devices="3:4"))).message


@pytest.mark.parametrize("text", ["9" * 5000, "0:" + "9" * 5000, "\u0661"])
def test_a_number_that_no_device_can_have_chooses_nothing(text: str) -> None:
    node = device_manager("p5.48xlarge")
    assert gpus_of(node.admit(gpu_pod("a", 1, devices=text))) == [0]


def test_a_mig_instance_may_be_chosen_by_its_first_slice() -> None:
    node = device_manager("dgx-a100-80[mig=all-1g.10gb]")
    (grant,) = granted(node.admit(gpu_pod("a", 1, MIG, devices="3:4")))
    (cut,) = (one for one in node.gpus[3].cuts if one.uuid in grant.device_ids)
    assert cut.start == 4


def test_what_a_pod_held_comes_back_from_its_status() -> None:
    before, after = device_manager("p5.48xlarge"), device_manager("p5.48xlarge")
    found = granted(before.admit(gpu_pod("a", 3, devices="1,4,6")))
    pod = gpu_pod("a", 3) | {"status": status_of(found)}
    assert after.restore(pod) == found
    assert gpus_of(after.admit(gpu_pod("b", 5))) == [0, 2, 3, 5, 7]
    assert after.restore(pod | {"metadata": {"uid": "twin", "name": "twin"}}) == ()
