"""Objects as written become asks and facts: exact amounts, devices apart, one spelling for one meaning."""

from __future__ import annotations

import textwrap
from typing import Any
from zlib import crc32

import pytest

from shoal.api.decode import read
from shoal.api.node import Node
from shoal.api.node_affinity import NodeAffinity, NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
from shoal.api.pod import Pod
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration
from shoal.api.workloads import DaemonSet
from shoal.data.gpus import find_model
from shoal.devices.layout import Layout
from shoal.engine.asks import Ask, HostPort
from shoal.engine.device_demand import MigTiles, WholeGpus
from shoal.engine.events import NodeFacts
from shoal.engine.from_api import MOST_GPUS, ask_of_pod, daemon_set_ask, node_facts_of
from shoal.units.errors import UserError

GIB = 1 << 30


def only(text: str, kind: type) -> Any:
    (document,) = read(textwrap.dedent(text))
    assert isinstance(document.value, kind)
    return document.value


def pod(spec: str) -> Pod:
    head = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team-a}\nspec:\n"
    value = only(head + textwrap.indent(textwrap.dedent(spec), "  "), Pod)
    assert isinstance(value, Pod)
    return value


def asked(spec: str, containers: str = "[{name: c}]") -> Ask:
    return ask_of_pod(pod(f"containers: {containers}\n{textwrap.dedent(spec)}"))


def node(rest: str) -> NodeFacts:
    value = only(f"apiVersion: v1\nkind: Node\n{textwrap.dedent(rest)}", Node)
    assert isinstance(value, Node)
    return node_facts_of(value)


def product(*models: str) -> Requirement:
    return Requirement("nvidia.com/gpu.product", "In", models)


GPU_LIMIT = "[{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]"

ASKS: dict[str, tuple[Ask, Ask]] = {
    "nothing asked": (asked(""), Ask()),
    "cpu in milli, memory in bytes, GPUs as devices": (
        asked("", "[{name: c, resources: {requests: {cpu: 1500m, memory: 1Gi}, limits: {nvidia.com/gpu: 2}}}]"),
        Ask(requests=(("cpu", 1500), ("memory", GIB)), devices=WholeGpus(2)),
    ),
    "other devices are counted resources": (
        asked("", "[{name: c, resources: {limits: {amd.com/gpu: 1}}}]"),
        Ask(requests=(("amd.com/gpu", 1),)),
    ),
    "MIG instances are counted, and tiles where a node is cut on demand": (
        asked("", "[{name: c, resources: {limits: {nvidia.com/mig-1g.10gb: 2}}}]"),
        Ask(requests=(("nvidia.com/mig-1g.10gb", 2),), devices=MigTiles((("1g.10gb", 2),))),
    ),
    "GPUs of several containers add up": (
        asked("", f"[{GPU_LIMIT[1:-1]}, {GPU_LIMIT[1:-1].replace('name: c', 'name: d')}]"),
        Ask(devices=WholeGpus(2)),
    ),
    "no GPUs asked is no demand for devices": (
        asked("", "[{name: c, resources: {limits: {nvidia.com/gpu: 0}}}]"),
        Ask(),
    ),
    "overhead comes on top": (asked("overhead: {cpu: 250m}"), Ask(requests=(("cpu", 250),))),
    "where the pod is, is not part of what it asks": (asked("nodeName: n1"), Ask()),
    "a node selector": (
        asked("nodeSelector: {zone: a, disk: ssd}"),
        Ask(nodes=asked("nodeSelector: {disk: ssd, zone: a}").nodes),
    ),
    "ports of the host, every address by its one name": (
        asked(
            "",
            "[{name: c, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 8081}, "
            "{containerPort: 82, hostPort: 8082, hostIP: 10.0.0.1, protocol: UDP}]}]",
        ),
        Ask(host_ports=(HostPort(8081), HostPort(8082, "UDP", "10.0.0.1"))),
    ),
    "tolerations in any order, repeated, with seconds": (
        asked(
            """\
            tolerations:
            - {key: b, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
            - {key: a, value: x}
            - {key: a, value: x, operator: Equal}
            """
        ),
        Ask(tolerations=(Toleration("a", "Equal", "x"), Toleration("b", "Exists", "", "NoExecute"))),
    ),
    "a model named by the selector": (
        asked("nodeSelector: {nvidia.com/gpu.product: Tesla-T4}", GPU_LIMIT),
        Ask(
            devices=WholeGpus(1),
            gpu_models=frozenset({"Tesla-T4"}),
            nodes=asked("nodeSelector: {nvidia.com/gpu.product: Tesla-T4}").nodes,
        ),
    ),
}


@pytest.mark.parametrize(("got", "want"), ASKS.values(), ids=ASKS)
def test_ask(got: Ask, want: Ask) -> None:
    assert got == want
    assert hash(got) == hash(want)


TERMS = {
    "one term, one list": ([[product("A", "B")]], {"A", "B"}),
    "alternatives add up": ([[product("A")], [product("B")]], {"A", "B"}),
    "lists in one term narrow each other": ([[product("A", "B"), product("B", "C")]], {"B"}),
    "an alternative without a model leaves it open": ([[product("A")], [Requirement("zone", "Exists")]], set()),
    "excluding a model leaves the rest open": ([[Requirement("nvidia.com/gpu.product", "NotIn", ("A",))]], set()),
    "an empty alternative matches nothing and adds nothing": ([[product("A")], []], {"A"}),
}


@pytest.mark.parametrize(("terms", "models"), TERMS.values(), ids=TERMS)
def test_models_tied_to(terms: list[list[Requirement]], models: set[str]) -> None:
    added = NodeAffinity(NodeSelector(tuple(NodeSelectorTerm(tuple(term)) for term in terms)))
    assert ask_of_pod(pod(f"containers: {GPU_LIMIT}"), added).gpu_models == models
    assert ask_of_pod(pod("containers: [{name: c}]"), added).gpu_models == frozenset(), "a pod without GPUs has none"


def test_preferences_are_kept_with_their_weights() -> None:
    preferred = asked(
        """\
        affinity:
          nodeAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 5
              preference: {matchExpressions: [{key: zone, operator: Exists}]}
        """
    ).preferred
    assert preferred == (PreferredSchedulingTerm(5, NodeSelectorTerm((Requirement("zone", "Exists"),))),)


ZONE_A, ZONE_B, SSD = (
    NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),
    NodeSelectorTerm((Requirement("zone", "In", ("b",)),)),
    NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)),
)
OWN = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: %s}}}"
OWN_TERMS = {
    "the pod says nothing": ("", True),
    "the pod's own alternatives": (
        OWN % "[{matchExpressions: [{key: gpu, operator: Exists}]}, {matchFields: "
        "[{key: metadata.name, operator: In, values: [n1]}]}]",
        True,
    ),
    "the pod's own empty alternative": (OWN % "[{}]", False),
    "the pod's own selector": ("nodeSelector: {gpu: 'yes'}", True),
}


@pytest.mark.parametrize(("spec", "possible"), OWN_TERMS.values(), ids=OWN_TERMS)
def test_affinity_of_the_profile_must_hold_beside(spec: str, possible: bool) -> None:
    written = pod(f"containers: [{{name: c}}]\n{spec}")
    added = NodeAffinity(NodeSelector((ZONE_A, SSD, NodeSelectorTerm())), (PreferredSchedulingTerm(3, ZONE_B),))
    both = ask_of_pod(written, added)
    alone = ask_of_pod(written)
    required = added.required
    assert required is not None
    matched = 0
    for name in ("n1", "n2"):
        for zone in ("a", "b"):
            for disk in ("ssd", "hdd"):
                for gpu in ({"gpu": "yes"}, {}):
                    labels = {"zone": zone, "disk": disk, **gpu}
                    want = alone.nodes.matches(name, labels) and required.matches(name, labels)
                    assert both.nodes.matches(name, labels) == want
                    matched += want
    assert bool(matched) == possible
    assert both.preferred == added.preferred


NODE = """\
metadata: {name: gpu-1, labels: {nvidia.com/gpu.product: Tesla-T4, zone: a}}
spec: {unschedulable: true, taints: [{key: dedicated, value: x, effect: NoSchedule}]}
status: {allocatable: {cpu: 7910m, memory: 1Gi, pods: "30", nvidia.com/gpu: 4, amd.com/gpu: 1}}
"""


T4 = find_model("Tesla-T4")
T4_MIB = T4.memory_mib() if T4 is not None else 0


def test_a_node_has_amounts_in_base_units_and_its_gpus_apart() -> None:
    assert node(NODE) == NodeFacts(
        name="gpu-1",
        allocatable={"amd.com/gpu": 1, "cpu": 7910, "memory": GIB, "pods": 30},
        labels={"nvidia.com/gpu.product": "Tesla-T4", "zone": "a"},
        taints=(Taint("dedicated", "NoSchedule", "x"),),
        unschedulable=True,
        gpus=4,
        gpu_model="Tesla-T4",
        rank=crc32(b"gpu-1"),
        layout=Layout(memory_mib=T4_MIB),
    )


def test_a_node_that_says_nothing_of_pods_takes_as_many_as_a_kubelet_would() -> None:
    assert node("metadata: {name: n1}\nstatus: {capacity: {cpu: 2}}").allocatable == {"cpu": 2000, "pods": 110}


def test_a_node_without_room_for_pods_has_none() -> None:
    assert node("metadata: {name: n1}\nstatus: {allocatable: {pods: 0}}").allocatable == {"pods": 0}


def test_a_node_that_is_not_ready_is_left_to_its_taints() -> None:
    text = "metadata: {name: n1}\nstatus: {conditions: [{type: Ready, status: 'False'}], allocatable: {pods: 1}}"
    facts = node(text)
    assert not facts.unschedulable
    assert facts.taints == ()


ABSURD = {
    "a node": (
        lambda: node(f"metadata: {{name: n1}}\nstatus: {{allocatable: {{nvidia.com/gpu: {MOST_GPUS + 1}}}}}"),
        "Node n1: status.allocatable: 1025 of nvidia.com/gpu: no node has that many; at most 1024 are read",
    ),
    "a pod": (
        lambda: asked("", "[{name: c, resources: {limits: {nvidia.com/gpu: 1P}}}]"),
        (
            "Pod team-a/p: spec.containers: 1000000000000000 of nvidia.com/gpu: no node has that many; "
            "at most 1024 are read"
        ),
    ),
}


@pytest.mark.parametrize(("make", "complaint"), ABSURD.values(), ids=ABSURD)
def test_more_gpus_than_any_machine_has_are_refused(make: Any, complaint: str) -> None:
    with pytest.raises(UserError) as caught:
        make()
    assert str(caught.value) == complaint


def test_pods_of_a_daemon_set_stay_on_nodes_in_trouble() -> None:
    text = """\
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: exporter, namespace: gpu}
    spec:
      selector: {matchLabels: {app: x}}
      template:
        metadata: {labels: {app: x}}
        spec:
          nodeSelector: {gpu: "yes"}
          containers: [{name: c, resources: {requests: {cpu: 100m}}}]
    """
    value = only(text, DaemonSet)
    ask = daemon_set_ask(value)
    assert ask.requests == (("cpu", 100),)
    assert ask.nodes.matches("n", {"gpu": "yes"})
    assert {t.key for t in ask.tolerations} >= {"node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"}


def test_device_claims_that_nobody_read_are_known_by_name_and_keep_the_pod_waiting() -> None:
    ask = asked("resourceClaims: [{name: one, resourceClaimName: c}, {name: own, resourceClaimTemplateName: t}]")
    one, own = ask.claims
    assert one.shared.endswith("/c")
    assert "templates are not read here" in own.trouble


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            """
            affinity:
              podAntiAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                - {topologyKey: zone, labelSelector: {}}
            """,
            id="anti-affinity",
        ),
        pytest.param(
            "topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]",
            id="a hard spread",
        ),
    ],
)
def test_rules_about_other_pods_are_part_of_the_ask(spec: str) -> None:
    assert asked(spec) != asked("")
    assert asked(spec) == asked(spec)
