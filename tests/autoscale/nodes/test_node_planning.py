"""What is provisioned for pending pods."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from build.pool_worlds import daemon_set, homes, machine, planned, pod, pool, standing, world
from shoal.api.pod import Pod
from shoal.autoscale.nodes.plan import PlanningSettings
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.autoscale.nodes.volumes import Volumes

SMALL, MIDDLE, LARGE = machine("small", 2, price=1), machine("middle", 4, price=2), machine("large", 16, price=10)
GPU1, GPU8 = machine("gpu-1", 8, price=4, gpus=1), machine("gpu-8", 96, price=30, gpus=8)
ALL = (SMALL, MIDDLE, LARGE, GPU1, GPU8)


def _term(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def _zone_affinity(**parts: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": parts}}


_SPREAD: dict[str, Any] = {
    "topologyKey": "topology.kubernetes.io/zone",
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}
_APART: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


def test_the_cheapest_type_that_holds_the_pod_is_launched() -> None:
    assert homes(planned(ALL, [pod("p", "3")])) == [("middle", ("p",))]


def test_a_planned_node_grows_with_its_pods_before_another_node_is_planned() -> None:
    plan = planned(ALL, [pod("p0", "2"), pod("p1", "2")])

    assert homes(plan) == [("middle", ("p0", "p1"))]


def test_gpu_pods_share_a_node_with_enough_gpus() -> None:
    plan = planned((GPU1, GPU8), [pod(f"p{n}", "1", gpus=1) for n in range(3)])

    assert homes(plan) == [("gpu-8", ("p0", "p1", "p2"))]


def test_shared_gpus_are_tried_by_the_engine_and_not_added_up() -> None:
    # Three times 0.6 of a GPU is less than two GPUs, and still needs three.
    shares = [pod(f"p{n}", "1", annotations={"gpu-fraction": "0.6"}) for n in range(3)]
    two = machine("gpu-2", 16, price=8, gpus=2)

    plan = planned((two,), shares)

    assert not plan.pending
    assert sorted(len(node.pods) for node in plan.new_nodes) == [1, 2]


def test_a_pod_goes_to_a_node_that_exists_before_a_node_is_provisioned() -> None:
    plan = planned(ALL, [pod("p")], nodes=[standing("n1", MIDDLE, pod("old", "2"))])

    assert plan.placed == {"default/p": "n1"}
    assert not plan.new_nodes


def test_a_node_that_starts_counts_with_the_gpus_that_it_will_have() -> None:
    starting = standing(
        "n1",
        GPU8,
        allocatable={"cpu": "96", "memory": "384Gi", "pods": "110", "nvidia.com/gpu": "0"},
        taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
        is_initialized=False,
    )
    plan = planned(ALL, [pod("p", "8", gpus=8)], nodes=[starting])

    assert plan.placed == {"default/p": "n1"}
    assert not plan.new_nodes


def test_startup_taints_are_ignored_until_the_node_has_started() -> None:
    pools = [pool(startupTaints=[{"key": "driver", "effect": "NoSchedule"}])]
    taints = [{"key": "driver", "effect": "NoSchedule"}]

    starting = planned(ALL, [pod("p")], pools=pools, nodes=[standing("n", SMALL, taints=taints, is_initialized=False)])
    started = planned(ALL, [pod("p")], pools=pools, nodes=[standing("n", SMALL, taints=taints)])

    assert starting.placed == {"default/p": "n"}
    assert len(started.new_nodes) == 1


def test_a_deleting_node_takes_no_pods() -> None:
    plan = planned(ALL, [pod("p")], nodes=[standing("n", LARGE, is_deleting=True)])

    assert len(plan.new_nodes) == 1


def test_the_heaviest_pool_serves_and_the_last_name_among_equal_weights() -> None:
    pools = [pool("a", weight=10), pool("b", weight=10), pool("c")]

    assert [node.pool for node in planned(ALL, [pod("p")], pools=pools).new_nodes] == ["b"]


def test_a_lighter_pool_serves_once_the_limits_of_the_heavier_one_are_reached() -> None:
    pools = [pool("heavy", weight=10, limits={"nodes": 1}), pool("light")]
    plan = planned((SMALL,), [pod("p0", "2"), pod("p1", "2")], pools=pools)

    assert sorted(node.pool for node in plan.new_nodes) == ["heavy", "light"]


def test_a_planned_node_counts_against_a_limit_with_the_largest_of_its_types() -> None:
    pools = [pool(limits={"cpu": "17"})]
    plan = planned((SMALL, LARGE), [pod("p0", "2"), pod("p1", "2"), pod("p2", "15")], pools=pools)

    # The largest pod takes 16 cores of the limit; one core is left, and no type has so few.
    assert homes(plan) == [("large", ("p2",))]
    assert {each.pod for each in plan.pending} == {"default/p0", "default/p1"}


def test_the_limit_of_spending_bounds_the_price_of_all_nodes() -> None:
    pools = [pool(limits={"shoal.dev/spend-per-hour": "5"})]
    plan = planned((MIDDLE,), [pod(f"p{n}", "4") for n in range(4)], pools=pools)

    assert plan.price == 4
    assert len(plan.pending) == 2
    assert "limits of the pool are reached" in plan.pending[0].by_pool["default"]


def test_static_pools_serve_no_pods() -> None:
    plan = planned(ALL, [pod("p")], pools=[pool(replicas=2)])

    assert [each.reason for each in plan.pending] == ["there is no pool that pods may use"]


def test_daemon_sets_take_their_part_of_new_nodes() -> None:
    plan = planned((SMALL, MIDDLE), [pod("p", "1500m")], daemon_sets=(daemon_set("agent", "1"),))

    assert homes(plan) == [("middle", ("p",))]


def test_a_daemon_set_that_cannot_run_on_the_pool_takes_nothing() -> None:
    agent = daemon_set("agent", "1", nodeSelector={"kubernetes.io/arch": "arm64"})

    assert homes(planned((SMALL, MIDDLE), [pod("p", "1500m")], daemon_sets=(agent,))) == [("small", ("p",))]


def test_a_preference_holds_until_it_proves_impossible() -> None:
    wanted = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": _term("x", "y")}]}
    zone = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": _term("topology.kubernetes.io/zone", "b")}
        ]
    }

    assert len(planned(ALL, [pod("p", **_zone_affinity(**wanted))]).new_nodes) == 1
    assert planned(ALL, [pod("p", **_zone_affinity(**zone))]).new_nodes[0].zones == ("b",)


def test_the_first_alternative_term_is_given_up_for_the_next() -> None:
    terms = {
        "nodeSelectorTerms": [_term("topology.kubernetes.io/zone", "nowhere"), _term("kubernetes.io/arch", "amd64")]
    }
    plan = planned(ALL, [pod("p", **_zone_affinity(requiredDuringSchedulingIgnoredDuringExecution=terms))])

    assert not plan.pending


def test_soft_taints_are_tolerated_last() -> None:
    soft = [{"key": "busy", "effect": "PreferNoSchedule"}]
    pools = [pool("soft", weight=10, taints=soft), pool("plain")]

    assert [node.pool for node in planned(ALL, [pod("p")], pools=pools).new_nodes] == ["plain"]
    assert [node.pool for node in planned(ALL, [pod("p")], pools=pools[:1]).new_nodes] == ["soft"]


def test_pods_are_spread_over_all_zones_that_the_pool_can_provide() -> None:
    pods = [pod(f"p{n}", labels={"app": "web"}, topologySpreadConstraints=[_SPREAD]) for n in range(4)]
    plan = planned((LARGE,), pods)

    assert sorted((node.zones, len(node.pods)) for node in plan.new_nodes) == [(("a",), 2), (("b",), 2)]


def test_anti_affinity_by_zone_leaves_one_pod_for_each_zone() -> None:
    pods = [pod(f"p{n}", labels={"app": "web"}, affinity=_APART) for n in range(3)]
    plan = planned((SMALL,), pods)

    assert len(plan.new_nodes) == 1
    assert len(plan.pending) == 2, "the first node may still end up in either zone"


def test_the_pods_that_anti_affinity_selects_keep_away_too() -> None:
    old = pod("old", labels={"app": "web"}, affinity=_APART)
    plan = planned((SMALL,), [pod("p", labels={"app": "web"})], nodes=[standing("n", LARGE, old)])

    assert [node.zones for node in plan.new_nodes] == [("b",)]


def test_host_ports_keep_pods_apart() -> None:
    port: dict[str, Any] = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}

    assert len(planned((LARGE,), [pod("p0", **port), pod("p1", **port)]).new_nodes) == 2


def test_a_pool_states_why_it_cannot_serve_a_pod() -> None:
    pools = [
        pool("arm", ("kubernetes.io/arch", "In", ["arm64"])),
        pool("tainted", taints=[{"key": "t", "effect": "NoSchedule"}]),
    ]
    plan = planned((SMALL,), [pod("p", "8")], pools=[*pools, pool("small")])

    assert plan.pending[0].by_pool == {
        "arm": "no instance type and offering satisfies the requirements of the pool",
        "tainted": "the pod does not tolerate taint t:NoSchedule",
        "small": "no instance type has enough resources",
    }


def test_spot_is_launched_where_it_is_cheaper_and_allowed() -> None:
    kind = machine("m", 4, price=2, spot=0.5)
    on_demand: dict[str, Any] = {"nodeSelector": {"karpenter.sh/capacity-type": "on-demand"}}

    assert planned((kind,), [pod("p")]).new_nodes[0].offering.capacity_type == "spot"
    assert planned((kind,), [pod("p", **on_demand)]).new_nodes[0].offering.capacity_type == "on-demand"


def test_planning_leaves_no_trace_so_that_the_same_plan_comes_again() -> None:
    planner = NodePlanner(
        world(ALL, [pod("p", "3"), pod("q", "9")], nodes=[standing("n", MIDDLE)], pools=[pool(limits={"cpu": "64"})])
    )

    assert planner.plan() == planner.plan()


def test_a_type_without_room_for_daemon_pods_is_not_used() -> None:
    plan = planned((SMALL,), [pod("p", "0")], daemon_sets=(daemon_set("agent", "3"),))

    assert not plan.new_nodes


def _with_volume(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def test_a_claim_binds_the_pod_to_the_zones_of_its_volume() -> None:
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]}
    volume = {
        "metadata": {"name": "v"},
        "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}},
    }
    bound = {"metadata": {"name": "c"}, "spec": {"volumeName": "v"}}
    lost = {"metadata": {"name": "c"}, "spec": {"volumeName": "gone"}}

    found = planned((SMALL,), [pod("p", **_with_volume("c"))], volumes=Volumes([bound], [volume]))
    missing = planned((SMALL,), [pod("p", **_with_volume("c"))], volumes=Volumes([lost], [volume]))

    assert found.new_nodes[0].zones == ("b",)
    assert missing.pending[0].reason == 'persistentvolume "gone" not found'


def test_a_claim_that_does_not_exist_keeps_the_pod_pending() -> None:
    plan = planned((SMALL,), [pod("p", **_with_volume("nothing"))])

    assert plan.pending[0].reason == 'persistentvolumeclaim "nothing" not found'


def test_an_ephemeral_claim_goes_to_the_zones_of_its_class() -> None:
    term = {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": ["b"]}]}
    storage = {"metadata": {"name": "s"}, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": [term]}
    ephemeral = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "s"}}}}
    plan = planned((SMALL,), [pod("p", volumes=[ephemeral])], volumes=Volumes(classes=[storage]))

    assert plan.new_nodes[0].zones == ("b",)


H100 = machine("h100-8", 96, price=30, gpus=8, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})


def _asks(name: str, resource: str, count: int, cpu: int = 1) -> Pod:
    wanted = {"cpu": str(cpu), resource: str(count)}
    return pod(name, containers=[{"name": "main", "resources": {"requests": wanted, "limits": wanted}}])


def test_a_pool_that_cuts_its_gpus_serves_mig_instances() -> None:
    cut = pool(labels={"nvidia.com/mig.config": "all-1g.10gb"})
    slices = [_asks(f"p{number}", "nvidia.com/mig-1g.10gb", 1) for number in range(57)]

    assert sorted(len(node.pods) for node in planned((H100,), slices, pools=[cut]).new_nodes) == [1, 56]
    assert planned((H100,), slices[:1]).pending
    assert planned((H100,), [pod("whole", gpus=1)], pools=[cut]).pending


def test_a_pool_that_shares_its_gpus_serves_replicas() -> None:
    shared = pool(labels={"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"})
    plan = planned((H100,), [pod(f"p{number}", "1", gpus=1) for number in range(33)], pools=[shared])

    assert sorted(len(node.pods) for node in plan.new_nodes) == [1, 32]


def test_mig_on_demand_fits_as_many_instances_as_the_gpu_has_slices() -> None:
    divided = pool(labels={"shoal.dev/mig-layout": "dynamic"})
    one = machine("h100-1", 24, price=4, gpus=1, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    pods = [_asks(f"p{number}", "nvidia.com/mig-3g.40gb", 1) for number in range(3)]
    plan = planned((one,), pods, pools=[divided])

    assert sorted(len(node.pods) for node in plan.new_nodes) == [1, 2]


def test_mig_instances_that_fill_a_gpu_share_it_whatever_the_order_of_their_pods() -> None:
    divided = pool(labels={"shoal.dev/mig-layout": "dynamic"})
    one = machine("h100-1", 24, price=4, gpus=1, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    profiles = ("1g.10gb", "1g.10gb", "3g.40gb", "2g.20gb")
    for places in permutations(range(4)):
        # A pod with more cpu is planned earlier.
        pods = [
            _asks(f"p{number}", f"nvidia.com/mig-{profile}", 1, cpu=1 + place)
            for number, (profile, place) in enumerate(zip(profiles, places, strict=True))
        ]
        plan = planned((one,), pods, pools=[divided], settings=PlanningSettings(packing="LeastCost"))
        starting = standing(
            "n1",
            one,
            allocatable={"cpu": "24", "memory": "96Gi", "pods": "110"},
            labels={"shoal.dev/mig-layout": "dynamic"},
            is_initialized=False,
        )
        again = planned((one,), pods, pools=[divided], nodes=[starting], settings=PlanningSettings(packing="LeastCost"))

        assert [len(node.pods) for node in plan.new_nodes] == [4], places
        assert len(again.placed) == 4, "the node that starts is enough"


def test_a_gpu_that_is_cut_on_demand_is_no_whole_gpu_beside() -> None:
    divided = pool(labels={"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "1"})
    two = machine("h100-2", 24, price=4, gpus=2, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    pods = [pod(f"whole-{n}", gpus=1) for n in range(2)]
    pods += [_asks(f"slice-{n}", "nvidia.com/mig-3g.40gb", 1) for n in range(2)]
    plan = planned((two,), pods, pools=[divided])
    starting = standing(
        "n1",
        two,
        allocatable={"cpu": "24", "memory": "96Gi", "pods": "110", "nvidia.com/gpu": "2"},
        labels={"shoal.dev/mig-layout": "dynamic", "shoal.dev/mig-devices": "1"},
        is_initialized=False,
    )
    placed = planned((two,), pods, pools=[divided], nodes=[starting])

    assert len(plan.new_nodes) == 2
    assert all(sum("whole" in key for key in node.pods) == 1 for node in plan.new_nodes)
    assert len(placed.placed) == 3
    assert len(placed.new_nodes) == 1


def test_a_pool_that_cuts_gpus_on_demand_may_have_machines_whose_gpus_cannot_be_cut() -> None:
    divided = pool(labels={"shoal.dev/mig-layout": "dynamic"})
    h100 = machine("h100-1", 24, price=4, gpus=1, labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"})
    a10g = machine("a10g-1", 24, price=2, gpus=1, labels={"nvidia.com/gpu.product": "NVIDIA-A10G"})
    plain = machine("plain", 24, price=1)
    pods = [_asks("slice", "nvidia.com/mig-3g.40gb", 1), pod("whole", "20", gpus=1), pod("none", "24")]
    plan = planned((plain, a10g, h100), pods, pools=[divided])

    assert sorted((node.launch.name, node.pods) for node in plan.new_nodes) == [
        ("a10g-1", ("default/whole",)),
        ("h100-1", ("default/slice",)),
        ("plain", ("default/none",)),
    ]


def test_no_node_is_provisioned_for_a_pod_that_comes_with_a_node() -> None:
    plan = planned(ALL, [pod("p", owner="DaemonSet")])

    assert plan.pending[0].reason == "no node is provisioned for a pod of a DaemonSet"
