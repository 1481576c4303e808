"""Nodes are planned with the devices that they will publish for resource claims."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta

import pytest

from build.claim_plans import (
    CLASSES,
    DYNAMIC,
    NOW,
    V1,
    claim,
    decided,
    machine_node,
    machine_slices,
    node_pool,
    plan_of,
    scaling_of,
    template,
    wants,
)
from build.depth import seeds
from build.manifests import Object, pod, thing
from shoal.api.decode import convert
from shoal.api.slices import ResourceSlice
from shoal.autoscale.nodes.device_templates import of_machine
from shoal.autoscale.nodes.gpu_instances import type_named
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planner import NodePlanner
from shoal.devices.names import OWN_DRA
from shoal.store.planned_devices import KnownDevices
from shoal.units.errors import Where

HOPPER = "device.attributes['gpu.nvidia.com'].architecture == 'Hopper'"
LARGE = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
SMALL_MIG = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
LARGE_MIG = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
ONLY_ONE_HAS = frozenset({"uuid", "parentUUID", "resource.kubernetes.io/pciBusID", "resource.kubernetes.io/pcieRoot"})
OF_DRIVER = frozenset({"driverVersion", "cudaDriverVersion", "brand"})


def claiming(name: str, of: str, shared: str = "", cpu: int = 1) -> Object:
    source = {"resourceClaimName": shared} if shared else {"resourceClaimTemplateName": of}
    return pod(f"t/{name}", limits={"cpu": cpu}, resourceClaims=[{"name": "mine", **source}])


def shared_claim(each: Object) -> bool:
    return any("resourceClaimName" in one for one in each["spec"].get("resourceClaims", ()))


def launched(plan: NodePlan) -> list[str]:
    return sorted(node.launch.name for node in plan.new_nodes)


def why(plan: NodePlan) -> str:
    (refusal,) = plan.pending
    return "; ".join(refusal.by_pool.values()) or refusal.reason


@pytest.mark.parametrize(
    ("machine", "label", "mig"),
    [
        ("p5.48xlarge", "true", ""),
        ("p5.48xlarge", "true", "all-1g.10gb"),
        ("p5.48xlarge", DYNAMIC, ""),
        ("p4d.24xlarge", DYNAMIC, ""),
        ("g5.12xlarge", "true", ""),
    ],
)
def test_the_expected_devices_of_a_machine_are_those_that_it_publishes(machine: str, label: str, mig: str) -> None:
    instance = type_named(machine, ["a"])
    assert instance is not None
    (expected,) = of_machine("x", instance, {OWN_DRA: label, **({"nvidia.com/mig.config": mig} if mig else {})}, {})
    pieces = [convert(each, ResourceSlice, Where()) for each in machine_slices("n", machine, label, mig)]
    published = {device.name: device for piece in pieces for device in piece.spec.devices}
    assert published.keys() == {device.name for device in expected.spec.devices}
    for device in expected.spec.devices:
        there = published[device.name]
        own = {key: value for key, value in there.attributes.items() if key not in ONLY_ONE_HAS | OF_DRIVER}
        assert {key: value for key, value in device.attributes.items() if key not in ONLY_ONE_HAS} == own
        assert (device.capacity, device.consumes_counters) == (there.capacity, there.consumes_counters)
    assert [one for piece in pieces for one in piece.spec.shared_counters] == list(expected.spec.shared_counters)


def world(draw: random.Random) -> list[Object]:
    """A pool of each kind, some nodes that exist or start, and pods with claims of all kinds."""
    pools = {
        "whole": node_pool("whole", "p5.48xlarge", "p4d.24xlarge", "g5.xlarge", "g5.12xlarge"),
        "cut": node_pool("cut", "p5.48xlarge", "p4d.24xlarge", label=DYNAMIC),
        "plugin": node_pool("plugin", "p5.48xlarge", "g5.xlarge", label="false"),
    }
    found: list[Object] = list(CLASSES)
    found += [pools[name] for name in draw.sample(sorted(pools), draw.randint(1, 3))]
    if draw.random() < 0.5:
        found.append(machine_node("old", "whole", "g5.12xlarge"))
        found += machine_slices("old", "g5.12xlarge")
    requests = [
        [wants(draw.randint(1, 4))],
        [wants(draw.choice([1, 2, 8]), HOPPER)],
        [wants(1, LARGE), wants(1, name="second")],
        [wants(1, SMALL_MIG, of="mig.nvidia.com")],
        [wants(1, LARGE_MIG, of="mig.nvidia.com")],
        [wants(9)],
        [{"name": "gpu", "firstAvailable": [
            {"name": "best", **wants(2, HOPPER)["exactly"]},
            {"name": "else", **wants(1)["exactly"]},
        ]}],
        [wants(1, adminAccess=True)],
    ]  # fmt: skip
    kinds = {f"kind-{number}": each for number, each in enumerate(requests)}
    found += [template(f"t/{name}", *each) for name, each in kinds.items()]
    found += [claim(f"t/shared-{number}", wants(draw.randint(1, 2))) for number in range(2)]
    for number in range(draw.randint(1, 9)):
        chance = draw.random()
        if chance < 0.3:
            found.append(claiming(f"p{number}", "", f"shared-{draw.randrange(2)}", draw.choice([1, 20, 40])))
        elif chance < 0.4:
            found.append(pod(f"t/p{number}", draw.randint(1, 3), limits={"cpu": 1}))
        else:
            found.append(claiming(f"p{number}", draw.choice(sorted(kinds)), cpu=draw.choice([1, 3, 20])))
    return found


def bound(objects: list[Object], plan: NodePlan) -> tuple[list[Object], dict[str, str]]:
    """The same with the nodes of the plan, as the machines are, and the pods held to the nodes that it chose."""
    homes = dict(plan.placed)
    made: list[Object] = []
    for number, node in enumerate(plan.new_nodes):
        name = f"new-{number}"
        label = DYNAMIC if node.pool == "cut" else "true"
        homes |= dict.fromkeys(node.pods, name)
        made.append(machine_node(name, node.pool, node.launch.name, label))
        made[-1]["status"]["allocatable"]["cpu"] = node.launch.allocatable()["cpu"] // 1000
        if node.pool == "plugin":
            made[-1]["status"]["allocatable"]["nvidia.com/gpu"] = node.launch.capacity["nvidia.com/gpu"]
        else:
            made += machine_slices(name, node.launch.name, label)
    for each in objects:
        if each["kind"] == "Pod" and (home := homes.get(f"t/{each['metadata']['name']}")):
            each["spec"]["nodeSelector"] = {"kubernetes.io/hostname": home}
    return [*objects, *made], homes


@pytest.mark.parametrize("seed", seeds(8))
def test_the_scheduler_places_the_pods_of_a_plan_on_its_nodes_once_they_publish_their_devices(seed: int) -> None:
    objects = world(random.Random(seed))
    plan = plan_of(*objects)
    there, homes = bound(objects, plan)
    _, cluster, _ = decided(there)
    placed = {key: cluster.names[each.row] for key, each in cluster.pods.items() if key in homes}
    assert placed == homes


@pytest.mark.parametrize("seed", seeds(3))
def test_a_pod_that_a_plan_refuses_fits_on_no_empty_machine_of_the_pools(seed: int) -> None:
    objects = [
        each
        for each in world(random.Random(seed))
        if each["kind"] != "NodePool" or each["metadata"]["name"] != "plugin"
    ]
    if not any(each["kind"] == "NodePool" for each in objects):
        return
    # A shared claim that the scheduler has allocated on a node keeps other pods there.
    free = {f"t/{each['metadata']['name']}" for each in objects if each["kind"] == "Pod" and not shared_claim(each)}
    refused = {each.pod for each in plan_of(*objects).pending} & free
    pools = {each["metadata"]["name"]: each for each in objects if each["kind"] == "NodePool"}
    machines: list[Object] = []
    for name, each in pools.items():
        label = DYNAMIC if name == "cut" else "true"
        for kind in each["spec"]["template"]["spec"]["requirements"][0]["values"]:
            machines.append(machine_node(f"{name}-{kind.replace('.', '-')}", name, kind, label))
            machines += machine_slices(f"{name}-{kind.replace('.', '-')}", kind, label)
    for key in sorted(refused):
        alone = [each for each in objects if each["kind"] != "Pod" or f"t/{each['metadata']['name']}" == key]
        assert not decided([*alone, *machines])[1].pods, key


def test_a_claim_that_no_pool_can_serve_is_refused_with_the_devices_that_it_asks_for() -> None:
    pools = node_pool("gpu", "g5.xlarge"), node_pool("plugin", "g5.xlarge", label="false")
    plan = plan_of(*CLASSES, *pools, template("t/hopper", wants(1, HOPPER)), claiming("a", "hopper"))
    by_pool = plan.pending[0].by_pool
    assert "request gpu of claim mine: it asks for 1 of class gpu.nvidia.com" in by_pool["gpu"]
    assert HOPPER in by_pool["gpu"]
    assert "0 match" in by_pool["gpu"]
    assert "its nodes publish none for resource claims (label shoal.dev/dra of the pool)" in by_pool["plugin"]


def test_a_claim_without_its_class_is_refused_with_the_name_of_the_class() -> None:
    plan = plan_of(node_pool("gpu", "g5.xlarge"), template("t/one", wants()), claiming("a", "one"))
    assert "device class gpu.nvidia.com does not exist" in why(plan)


def test_a_pool_publishes_devices_if_it_says_so_or_its_nodes_or_else_those_of_the_cluster_do() -> None:
    claims = template("t/one", wants()), claiming("a", "one")
    silent = node_pool("gpu", "g5.xlarge", label="")
    with_plugin = machine_node("other", "else", "g5.xlarge", "")
    with_plugin["status"]["allocatable"]["nvidia.com/gpu"] = 1
    own = [machine_node("own", "gpu", "g5.xlarge", ""), *machine_slices("own", "g5.xlarge")]
    busy = claiming("b", "one")
    assert launched(plan_of(*CLASSES, silent, *claims)) == ["g5.xlarge"]
    assert launched(plan_of(*CLASSES, silent, with_plugin, *claims)) == []
    assert launched(plan_of(*CLASSES, silent, with_plugin, *own, *claims, busy)) == ["g5.xlarge"]
    refusing = node_pool("gpu", "g5.xlarge", label="false")
    assert launched(plan_of(*CLASSES, refusing, *claims)) == []
    wrong = machine_node("wrong", "gpu", "g5.xlarge", "")
    wrong["status"]["allocatable"]["nvidia.com/gpu"] = 1
    assert launched(plan_of(*CLASSES, node_pool("gpu", "g5.xlarge"), wrong, *claims)) == []


def test_devices_of_any_driver_are_copied_from_a_node_of_the_pool_without_what_only_it_has() -> None:
    device: Object = {
        "name": "accel-0",
        "attributes": {"uuid": {"string": "A-1"}, "kind": {"string": "large"}},
        "taints": [{"key": "accel.test/xid", "effect": "NoSchedule"}],
    }
    spec = {
        "driver": "accel.test",
        "nodeName": "old",
        "pool": {"name": "old", "resourceSliceCount": 1},
        "devices": [device],
    }
    of_driver = "device.driver == 'accel.test'"
    base = [
        thing(V1, "DeviceClass", "accel", spec={"selectors": [{"cel": {"expression": of_driver}}]}),
        node_pool("gpu", "g5.xlarge", label="false"),
        machine_node("old", "gpu", "g5.xlarge", ""),
        thing(V1, "ResourceSlice", "old", spec=spec),
        template("t/any", wants(of="accel")),
        template("t/this", wants(1, "device.attributes['accel.test'].uuid == 'A-1'", of="accel")),
    ]  # fmt: skip
    assert launched(plan_of(*base, claiming("a", "any"), claiming("b", "any"))) == ["g5.xlarge", "g5.xlarge"]
    assert "0 match" in why(plan_of(*base, claiming("a", "this")))
    device["taints"][0]["key"] = "other.test/reserved"
    assert launched(plan_of(*base, claiming("a", "any"))) == []


def test_machines_whose_devices_turned_out_otherwise_than_expected_are_not_bought_again_and_again() -> None:
    known = KnownDevices()
    first_slot = "device.attributes['resource.kubernetes.io'].pciBusID == '0000:01:00.0'"
    base = [*CLASSES, node_pool("gpu", "g5.xlarge"), template("t/odd", wants(1, first_slot)), claiming("a", "odd")]

    def bought(*there: Object, minutes: int) -> list[str]:
        now = NOW + timedelta(minutes=minutes)
        return launched(NodePlanner(scaling_of(*base, *there, known=known, now=now)[1]).plan())

    slices = machine_slices("new", "g5.xlarge")
    for piece in slices:
        for device in piece["spec"]["devices"]:
            device["attributes"]["resource.kubernetes.io/pciBusID"] = {"string": "0000:53:00.0"}
    assert bought(minutes=0) == ["g5.xlarge"]
    assert bought(machine_node("new", "gpu", "g5.xlarge"), *slices, minutes=5) == []
    assert bought(minutes=6) == []
    assert bought(minutes=90) == ["g5.xlarge"]


def test_a_node_that_starts_counts_with_the_devices_that_it_will_publish() -> None:
    base = [*CLASSES, node_pool("gpu", "g5.12xlarge"), machine_node("new", "gpu", "g5.12xlarge", is_ready=False)]
    base.append(template("t/two", wants(2)))
    pods = [claiming(name, "two") for name in "abc"]
    plan = plan_of(*base, *pods)
    assert Counter(plan.placed.values()) == {"new": 2}
    assert launched(plan) == ["g5.12xlarge"]


def test_pods_that_share_a_claim_use_a_node_that_exists_whatever_its_host_name() -> None:
    new = machine_node("ip-10-0-0-1.test", "gpu", "g5.12xlarge", is_ready=False)
    new["metadata"]["labels"]["kubernetes.io/hostname"] = "ip-10-0-0-1"
    base = [*CLASSES, node_pool("gpu", "g5.12xlarge"), new, claim("t/both", wants())]
    plan = plan_of(*base, claiming("a", "", "both"), claiming("b", "", "both"))
    assert (dict(plan.placed), launched(plan)) == (dict.fromkeys(("t/a", "t/b"), "ip-10-0-0-1.test"), [])


def test_a_pod_brings_no_single_member_of_a_gang_with_which_it_shares_a_claim() -> None:
    group = thing("scheduling.x-k8s.io/v1alpha1", "PodGroup", "t/g", spec={"minMember": 2})
    member, other = claiming("member", "", "both", cpu=30), pod("t/other", limits={"cpu": 1000})
    for each in (member, other):
        each["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    base = [*CLASSES, node_pool("gpu", "g5.xlarge", "g5.12xlarge"), group, claim("t/both", wants())]
    plan = plan_of(*base, member, other, claiming("alone", "", "both"))
    assert launched(plan) == ["g5.xlarge"]
    assert [each.pod for each in plan.pending] == ["t/member", "t/other"]
    other["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
    plan = plan_of(*base, member, other, claiming("alone", "", "both"))
    assert plan.pending == ()


def removal(*objects: Object) -> tuple[tuple[str, ...], list[str]]:
    """The nodes that are removed, and the types of what replaces them."""
    found = scaling_of(*objects, removes=True)[0].removal
    return ((), []) if found is None else (found.nodes, [each.launch.name for each in found.replacements])


def running(name: str, on: str, template_name: str, device: str) -> list[Object]:
    """A pod on a node, with the claim that was made for it."""
    made = claiming(name, template_name)
    made["spec"]["nodeName"] = on
    made["metadata"] |= {
        "uid": name,
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True, "uid": "r"}],
    }
    made["status"] = {
        "phase": "Running",
        "resourceClaimStatuses": [{"name": "mine", "resourceClaimName": f"{name}-mine"}],
    }
    own = claim(f"t/{name}-mine", wants())
    own["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    ]
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    own["status"] = {
        "allocation": {
            "devices": {"results": [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": on, "device": device}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
    }
    return [made, own]  # fmt: skip


def test_a_node_is_removed_only_if_the_claims_of_its_pods_can_be_allocated_elsewhere() -> None:
    base = [*CLASSES, node_pool("gpu", "g5.12xlarge"), template("t/one", wants())]
    for name in ("a", "b"):
        base += [machine_node(name, "gpu", "g5.12xlarge"), *machine_slices(name, "g5.12xlarge")]
    on_a = [each for at in range(3) for each in running(f"a-{at}", "a", "one", f"gpu-{at}")]
    on_b = [each for at in range(2) for each in running(f"b-{at}", "b", "one", f"gpu-{at}")]
    nodes, replacements = removal(*base, *on_a[:4], *on_b)
    assert (len(nodes), replacements) == (1, [])
    assert removal(*base, *on_a, *on_b) == ((), [])


def test_pods_that_share_an_allocated_claim_move_together_and_it_is_allocated_again() -> None:
    base = [*CLASSES, node_pool("gpu", "g5.12xlarge"), template("t/one", wants())]
    for name in ("a", "b"):
        base += [machine_node(name, "gpu", "g5.12xlarge"), *machine_slices(name, "g5.12xlarge")]
    first, shared = running("s-0", "a", "one", "gpu-0")
    second = running("s-1", "a", "one", "gpu-0")[0]
    for each in (first, second):
        each["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimName": "s-0-mine"}]
        del each["status"]["resourceClaimStatuses"]
    del shared["metadata"]["ownerReferences"]
    shared["status"]["reservedFor"] = [{"resource": "pods", "name": f"s-{at}", "uid": f"s-{at}"} for at in range(2)]
    on_b = [each for at in range(4) for each in running(f"b-{at}", "b", "one", f"gpu-{at}")]
    nodes, replacements = removal(*base, first, second, shared, *on_b[:6])
    assert (len(nodes), replacements) == (1, [])
    assert removal(*base, first, second, shared, *on_b) == ((), [])
