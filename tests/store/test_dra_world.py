"""Device claims as people write them, from the manifest to the node and the device."""

from __future__ import annotations

import json
from typing import Any

import pytest

from build.manifests import Object, node, pod, thing
from shoal.api.decode import read
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import cycle
from shoal.engine.evidence import evidence
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.manifest_cluster import manifest_cluster_of
from shoal.units.errors import UserError
from shoal.views.why import kube_line

V1 = "resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"
TYPE_IS_GPU = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].type == "gpu"'


def gpu(name: str, memory: str = "80Gi", **attributes: str) -> Object:
    values = {key: {"string": value} for key, value in {"type": "gpu", **attributes}.items()}
    return {"name": name, "attributes": values, "capacity": {"memory": {"value": memory}}}


def slice_of(at: str, *devices: Object, **more: Any) -> Object:
    pool = {"name": at, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": at, "pool": pool, "devices": list(devices), **more}
    return thing(V1, "ResourceSlice", f"{at}-slice", spec=spec)


def device_class(*expressions: str, name: str = DRIVER, **more: str) -> Object:
    return thing(V1, "DeviceClass", name, spec={"selectors": selectors(*expressions), **more})


def selectors(*expressions: str) -> list[Object]:
    return [{"cel": {"expression": expression}} for expression in expressions]


def devices(*expressions: str, count: int = 1, of: str = DRIVER, **more: Any) -> Object:
    request = {"deviceClassName": of, "count": count, "selectors": selectors(*expressions)}
    return {"devices": {"requests": [{"name": "gpu", "exactly": request}], **more}}


def template(name: str, spec: Object) -> Object:
    return thing(V1, "ResourceClaimTemplate", name, spec={"spec": spec})


def claim(name: str, spec: Object, status: Object | None = None) -> Object:
    return thing(V1, "ResourceClaim", name, spec=spec, **({"status": status} if status else {}))


def allocated(*names: str, to: tuple[str, ...] = ()) -> Object:
    results = [{"request": "gpu", "driver": DRIVER, "pool": at, "device": name} for at, name in map(_split, names)]
    reserved = [{"resource": "pods", "name": name, "uid": name} for name in to]
    return {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}


def _split(name: str) -> tuple[str, str]:
    at, _, device = name.partition("/")
    return at, device


def made_from(name: str) -> Object:
    return {"resourceClaims": [{"name": "mine", "resourceClaimTemplateName": name}]}


def using(name: str) -> Object:
    return {"resourceClaims": [{"name": "ours", "resourceClaimName": name}]}


def decided(*objects: Object) -> tuple[Cluster, dict[str, tuple[str, list[str]]]]:
    """One round: pod -> node and devices."""
    cluster = Cluster()
    intake = Intake(cluster)
    for event in manifest_cluster_of(
        read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "w")
    ).events:
        intake.apply(event)
    placement = Placement(cluster, profile_named(DEFAULT_POLICY, cluster, PodMix()))
    cycle(cluster, placement, now_s=0.0, seed=0)
    there = {}
    for key, holding in cluster.pods.items():
        claims = holding.grant.claims if holding.grant is not None else ()
        there[key] = cluster.names[holding.row], [pick.device for each in claims for pick in each.picks]
    return cluster, there


def where(*objects: Object) -> dict[str, tuple[str, list[str]]]:
    return decided(*objects)[1]


def told(pod_key: str, *objects: Object) -> str:
    cluster, _ = decided(*objects)
    return kube_line(evidence(cluster, cluster.pending[pod_key].charge.ask))


FLEET = (
    node("n1"),
    node("n2"),
    device_class(TYPE_IS_GPU),
    slice_of("n1", gpu("gpu-0", "40Gi"), gpu("gpu-1", "40Gi")),
    slice_of("n2", gpu("gpu-0"), {"name": "nic", "attributes": {"type": {"string": "nic"}}}),
)


def test_a_template_becomes_a_claim_of_each_pod() -> None:
    big = template("t/big", devices(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("60Gi")) >= 0'))
    assert where(*FLEET, big, pod("t/a", **made_from("big")), pod("t/b", **made_from("big"))) == {
        "t/a": ("n2", [f"{DRIVER}/n2/gpu-0"])
    }


def test_a_claim_by_name_is_one_for_all_its_pods() -> None:
    placed = where(*FLEET, claim("t/x", devices(count=2)), pod("t/a", **using("x")), pod("t/b", **using("x")))
    assert placed == dict.fromkeys(("t/a", "t/b"), ("n1", [f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1"]))


def test_a_claim_of_another_namespace_is_another_claim() -> None:
    line = told("u/a", *FLEET, claim("t/x", devices()), pod("u/a", **using("x")))
    assert line == '0/2 nodes are available: resourceclaim "x" not found.'


def test_an_allocated_claim_ties_its_pods_to_its_devices() -> None:
    there = claim("t/x", devices(), allocated("n1/gpu-1", to=("elsewhere",)))
    assert where(*FLEET, there, pod("t/a", **using("x"))) == {"t/a": ("n1", [f"{DRIVER}/n1/gpu-1"])}


def test_a_running_pod_holds_what_its_own_claim_was_given() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "controller": True}
    mine = claim("t/a-mine-x7", devices(), allocated("n1/gpu-1", to=("a",)))
    mine["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "mine"},
    }
    running = pod("t/a", on="n1", **made_from("one"))
    placed = where(*FLEET, template("t/one", devices()), mine, running, pod("t/b", nodeSelector={}, **made_from("one")))
    assert placed["t/a"] == ("n1", [f"{DRIVER}/n1/gpu-1"])
    assert placed["t/b"][1] != placed["t/a"][1]


def test_the_status_of_a_pod_names_the_claim_that_was_made_for_it() -> None:
    status = {"resourceClaimStatuses": [{"name": "mine", "resourceClaimName": "made"}]}
    there = claim("t/made", devices(), allocated("n1/gpu-1", to=("a",)))
    assert where(
        *FLEET, template("t/one", devices()), there, pod("t/a", on="n1", status=status, **made_from("one"))
    ) == {"t/a": ("n1", [f"{DRIVER}/n1/gpu-1"])}


def test_the_older_spellings_say_the_same() -> None:
    old = slice_of("n1")
    old["apiVersion"] = "resource.k8s.io/v1beta1"
    old["spec"]["devices"] = [{"name": "gpu-0", "basic": {"attributes": {"type": {"string": "gpu"}}}}]
    inline = claim("t/x", {"devices": {"requests": [{"name": "gpu", "deviceClassName": DRIVER}]}})
    inline["apiVersion"] = "resource.k8s.io/v1beta1"
    placed = where(node("n1"), device_class(TYPE_IS_GPU), old, inline, pod("t/a", **using("x")))
    assert placed == {"t/a": ("n1", [f"{DRIVER}/n1/gpu-0"])}


WAITS: dict[str, tuple[tuple[Object, ...], str]] = {
    "for a template": ((), 'resourceclaimtemplate "t/one" not found'),
    "for a class": (
        (template("t/one", devices(of="tpu.test")),),
        "claim mine: request gpu: device class tpu.test does not exist",
    ),
    "for a template whose name is misspelled": (
        (template("t/oone", devices()),),
        'resourceclaimtemplate "t/one" not found (did you mean oone?).',
    ),
    "for a class whose name is misspelled": (
        (template("t/one", devices(of=f"{DRIVER}m")),),
        f"device class {DRIVER}m does not exist (did you mean {DRIVER}?).",
    ),
    "with an expression about a misspelled attribute": (
        (template("t/one", devices(f'device.attributes["{DRIVER}"].typ == "gpu"')),),
        "no such key: typ (did you mean type?).",
    ),
    "with an expression that means nothing": (
        (template("t/one", devices("device.memory(")),),
        'claim mine: request gpu: selectors[0] "device.memory(": at 1:15: Syntax error',
    ),
    "with an expression that fails": (
        (template("t/one", devices(f'device.attributes["{DRIVER}"].color == "red"')),),
        f"fails on device {DRIVER}/n1/gpu-0: no such key: color",
    ),
}


@pytest.mark.parametrize(("more", "reason"), WAITS.values(), ids=WAITS)
def test_a_pod_waits(more: tuple[Object, ...], reason: str) -> None:
    line = told("t/a", *FLEET, *more, pod("t/a", **made_from("one")))
    assert line.startswith("0/2 nodes are available: ")
    assert reason in line


def test_a_class_whose_expression_fails_is_named() -> None:
    broken = device_class('device.attributes["x.test"].y', name="broken")
    line = told("t/a", *FLEET, broken, template("t/one", devices(of="broken")), pod("t/a", **made_from("one")))
    assert "device class broken: selectors[0]" in line


def test_an_expression_is_not_shown_devices_that_the_class_refuses() -> None:
    picky = template("t/one", devices(f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("60Gi"))'))
    # The network card has no memory; no GPU class means it, and so nobody asks.
    assert where(*FLEET, picky, pod("t/a", **made_from("one")))["t/a"][0] == "n2"


def test_devices_of_a_pool_that_is_being_published_are_left_alone() -> None:
    half = slice_of("n1", gpu("gpu-0"))
    half["spec"]["pool"]["resourceSliceCount"] = 2
    objects = (
        node("n1"),
        device_class(TYPE_IS_GPU),
        half,
        template("t/one", devices()),
        pod("t/a", **made_from("one")),
    )
    assert where(*objects) == {}


def test_an_extended_resource_is_served_by_the_class_that_names_it() -> None:
    named = device_class(TYPE_IS_GPU, extendedResourceName="nvidia.com/gpu")
    placed = where(*FLEET[:2], named, *FLEET[3:], pod("t/a", gpus=2), pod("t/b", gpus=2))
    assert placed == {"t/a": ("n1", [f"{DRIVER}/n1/gpu-0", f"{DRIVER}/n1/gpu-1"])}


def test_nodes_with_a_device_plugin_serve_the_resource_themselves() -> None:
    named = device_class(TYPE_IS_GPU, extendedResourceName="nvidia.com/gpu")
    placed = where(*FLEET[:2], node("n3", gpus=1), named, *FLEET[3:], pod("t/a", gpus=1))
    assert placed == {"t/a": ("n3", [])}


def test_every_class_has_a_resource_name() -> None:
    limits = {f"deviceclass.resource.kubernetes.io/{DRIVER}": 1}
    placed = where(*FLEET, pod("t/a", limits=limits))
    assert len(placed["t/a"][1]) == 1


def test_a_constraint_holds_the_devices_together() -> None:
    racks = slice_of("n1", gpu("a", rack="x"), gpu("b", rack="y"), gpu("c", rack="y"))
    tied = template("t/two", devices(count=2, constraints=[{"matchAttribute": f"{DRIVER}/rack"}]))
    placed = where(node("n1"), device_class(TYPE_IS_GPU), racks, tied, pod("t/a", **made_from("two")))
    assert placed == {"t/a": ("n1", [f"{DRIVER}/n1/b", f"{DRIVER}/n1/c"])}


def test_partitions_of_one_gpu_share_its_counters() -> None:
    def part(name: str, slices: int) -> Object:
        consumes = [{"counterSet": "gpu-0", "counters": {"slices": {"value": str(slices)}}}]
        return {"name": name, "attributes": {"type": {"string": "gpu"}}, "consumesCounters": consumes}

    counters = [{"name": "gpu-0", "counters": {"slices": {"value": "7"}}}]
    cut = slice_of("n1", part("whole", 7), part("left", 4), part("right", 3), sharedCounters=counters)
    pods = [pod(f"t/{name}", **made_from("one")) for name in "ab"]
    objects = (node("n1"), device_class(TYPE_IS_GPU), cut, template("t/one", devices()))
    assert where(*objects, *pods) == {"t/a": ("n1", [f"{DRIVER}/n1/whole"])}
    taken = claim("t/x", devices(), allocated("n1/left", to=("z",)))
    assert where(*objects, taken, *pods) == {"t/a": ("n1", [f"{DRIVER}/n1/right"])}


BOTH = {"name": "g", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}
BAD_CLAIMS: dict[str, tuple[list[Object], str]] = {
    "both a claim and a template": (
        [BOTH],
        "spec.resourceClaims[0]: exactly one of resourceClaimName and resourceClaimTemplateName is required",
    ),
    "neither": (
        [{"name": "g"}],
        "spec.resourceClaims[0]: exactly one of resourceClaimName and resourceClaimTemplateName is required",
    ),
    "a name given twice": (
        [{"name": "g", "resourceClaimName": "a"}, {"name": "g", "resourceClaimName": "b"}],
        'spec.resourceClaims[1].name: "g" is named twice',
    ),
}


@pytest.mark.parametrize(("claims", "complaint"), BAD_CLAIMS.values(), ids=BAD_CLAIMS)
def test_a_pod_says_of_each_claim_where_it_comes_from(claims: list[Object], complaint: str) -> None:
    with pytest.raises(UserError) as told:
        list(read(json.dumps(pod("t/p", resourceClaims=claims)), "w.json"))
    assert str(told.value) == f"w.json: document 1 (Pod t/p): {complaint}"
