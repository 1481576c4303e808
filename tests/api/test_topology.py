"""Trees of racks and networks, and the zones inside a node."""

from typing import Any

import pytest

from shoal.api.decode import read
from shoal.api.hyper_nodes import HyperNode, MemberSelector, RegexMatch, pattern_fault
from shoal.api.node_resource_topology import NodeResourceTopology
from shoal.api.topology import KaiTopology, KueueTopology
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

KUEUE = "kueue.x-k8s.io/v1beta1"
KAI = "kai.scheduler/v1alpha1"
VOLCANO = "topology.volcano.sh/v1alpha1"
ZONES = "topology.node.k8s.io/v1alpha2"


def text(version: str, kind: str, body: str) -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: t}}\n{body}\n"


def only(version: str, kind: str, body: str) -> Any:
    (document,) = read(text(version, kind, body), "t.yaml")
    return document.value


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2"])
def test_all_versions_of_a_kueue_topology_are_one(version: str) -> None:
    topology = only(f"kueue.x-k8s.io/{version}", "Topology", "spec: {levels: [{nodeLabel: block}, {nodeLabel: rack}]}")
    assert isinstance(topology, KueueTopology)
    assert topology.labels() == ("block", "rack")
    assert topology.metadata.namespace == ""


def test_the_topology_of_another_ecosystem_is_another_type() -> None:
    topology = only(KAI, "Topology", "spec: {levels: [{nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]}")
    assert isinstance(topology, KaiTopology)
    assert topology.labels() == ("rack", "kubernetes.io/hostname")


def test_a_hyper_node_is_read() -> None:
    node = only(
        VOLCANO,
        "HyperNode",
        "spec: {tier: 1, tierName: rack, members: [{type: Node, selector: {exactMatch: {name: n1}}},"
        " {type: HyperNode, selector: {regexMatch: {pattern: '^leaf-[0-9]+$'}}},"
        " {type: Node, selector: {labelMatch: {matchLabels: {rack: r1}}}}]}",
    )
    assert isinstance(node, HyperNode)
    assert (node.spec.tier, node.spec.tier_name) == (1, "rack")
    by_name, by_pattern, by_label = node.spec.members
    assert by_name.is_node()
    assert by_name.selector.matches("n1", {})
    assert not by_name.selector.matches("n11", {})
    assert not by_pattern.is_node()
    assert by_pattern.selector.matches("leaf-7", {})
    assert by_label.selector.matches("any", {"rack": "r1"})
    assert not by_label.selector.matches("any", {"rack": "r2"})


def test_a_pattern_is_looked_for_anywhere_in_the_name() -> None:
    selector = MemberSelector(regex_match=RegexMatch("rack-1"))
    assert selector.matches("a-rack-17", {})
    assert not selector.matches("rack-2", {})


GO = {
    "plain text": "node-1",
    "a set and a count": "^[a-z]+-[0-9]{2,3}$",
    "alternatives in a group without a number": "(?:a|b)",
    "a name for a group": "(?P<rack>r[0-9])",
    "case left aside": "(?i)NODE",
    "as little as possible": "a+?b",
    "classes of characters": r"\d\w\s",
    "a plus inside a set": "[*+]",
    "a bracket inside a set": r"[]a]",
    "an escaped backslash before a digit": r"\\1",
    "Go's end of text": r"a\z",
    "Go's letters": r"\pL",
    "a class by name": "[[:alpha:]]",
    "two ampersands in a set": "[a&&b]",
    "flags in the middle": "a(?i)b",
}


@pytest.mark.parametrize("pattern", GO.values(), ids=GO)
def test_patterns_of_go_are_taken(pattern: str) -> None:
    assert pattern_fault(pattern) == ""


OTHERS = {
    "nothing": ("", "it is empty"),
    "an open bracket": ("[a", "missing closing ]: `[a`"),
    "an open group": ("(a", "missing closing ): `(a`"),
    "looking ahead": ("a(?=b)", "invalid or unsupported Perl syntax: `(?=`"),
    "looking behind": ("(?<!a)b", "invalid named capture: `(?<!a)b`"),
    "going back to a group": (r"(a)\1", r"invalid escape sequence: `\1`"),
    "never giving back": ("a*+b", "invalid nested repetition operator: `*+`"),
    "Python's end of text": (r"a\Z", r"invalid escape sequence: `\Z`"),
    "without end": ("a" * 20_000, "expression too large: ``"),
}


@pytest.mark.parametrize(("pattern", "fault"), OTHERS.values(), ids=OTHERS)
def test_patterns_that_go_does_not_read_are_refused_in_its_words(pattern: str, fault: str) -> None:
    assert pattern_fault(pattern) == fault


def test_the_zones_of_a_node_are_read() -> None:
    topology = only(
        ZONES,
        "NodeResourceTopology",
        "topologyPolicies: [SingleNUMANodePodLevel]\nattributes: [{name: topologyManagerScope, value: pod}]\n"
        "zones: [{name: node-0, type: Node, costs: [{name: node-1, value: 21}], resources: [{name: nvidia.com/gpu,"
        " capacity: 4, allocatable: 4, available: 2}]}, {name: core-0, type: Core, parent: node-0}]",
    )
    assert isinstance(topology, NodeResourceTopology)
    assert topology.topology_policies == ("SingleNUMANodePodLevel",)
    assert topology.attributes[0].value == "pod"
    numa, core = topology.zones
    assert numa.costs[0].value == 21
    assert numa.resources[0].available == Quantity.of(2)
    assert core.parent == "node-0"


def levels(*labels: str) -> str:
    return f"spec: {{levels: [{', '.join(f'{{nodeLabel: {label}}}' for label in labels)}]}}"


def member(selector: str, kind: str = "Node") -> str:
    return f"spec: {{tier: 1, members: [{{type: {kind}, selector: {selector}}}]}}"


def zone(resources: str) -> str:
    return f"zones: [{{name: z, type: Node, resources: [{resources}]}}]"


LONGEST = "a" * 63 + "." + "b" * 63 + "." + "c" * 63 + "." + "d" * 61 + "/" + "e" * 63
BAD = {
    "no levels": (KUEUE, "Topology", "spec: {}", "spec.levels: at least one level is required"),
    "no levels of KAI's": (KAI, "Topology", "spec: {levels: []}", "spec.levels: at least one level is required"),
    "too many levels": (
        KUEUE,
        "Topology",
        levels(*(f"l{number}" for number in range(17))),
        "spec.levels: must have at most 16 items, got 17",
    ),
    "a level without its label": (
        KUEUE,
        "Topology",
        "spec: {levels: [{}]}",
        "spec.levels[0].nodeLabel: is required",
    ),
    "a level by no label": (
        KUEUE,
        "Topology",
        levels("'a b'"),
        (
            'spec.levels[0].nodeLabel: "a b" is not a label key: name part must be letters, digits, '
            "'-', '_' or '.', and start and end with a letter or digit"
        ),
    ),
    "one level twice": (
        KUEUE,
        "Topology",
        levels("rack", "rack"),
        'spec.levels[1].nodeLabel: "rack" is named twice',
    ),
    "something below single nodes": (
        KAI,
        "Topology",
        levels("kubernetes.io/hostname", "rack"),
        "spec.levels[0].nodeLabel: kubernetes.io/hostname can only be the lowest level; put it last",
    ),
    "the longest label key": (
        KUEUE,
        "Topology",
        levels(LONGEST),
        "spec.levels[0].nodeLabel: must be no more than 316 characters",
    ),
    "no tier": (VOLCANO, "HyperNode", "spec: {}", "spec.tier: is required"),
    "a tier below zero": (VOLCANO, "HyperNode", "spec: {tier: -1}", "spec.tier: must be at least 0, got -1"),
    "a member of another kind": (
        VOLCANO,
        "HyperNode",
        member("{exactMatch: {name: a}}", "Rack"),
        'spec.members[0].type: unsupported value "Rack"; supported values are HyperNode, Node',
    ),
    "a member nobody can find": (
        VOLCANO,
        "HyperNode",
        member("{}"),
        "spec.members[0].selector: exactly one of exactMatch, regexMatch and labelMatch is required",
    ),
    "a member found in two ways": (
        VOLCANO,
        "HyperNode",
        member("{exactMatch: {name: a}, labelMatch: {}}"),
        "spec.members[0].selector: exactly one of exactMatch, regexMatch and labelMatch is required",
    ),
    "a member without a name": (
        VOLCANO,
        "HyperNode",
        member("{exactMatch: {name: ''}}"),
        "spec.members[0].selector.exactMatch.name: is required",
    ),
    "a broken pattern": (
        VOLCANO,
        "HyperNode",
        member("{regexMatch: {pattern: '('}}"),
        ('spec.members[0].selector.regexMatch.pattern: "(" is not a pattern: missing closing ): `(`'),
    ),
    "an impossible label": (
        VOLCANO,
        "HyperNode",
        member("{labelMatch: {matchLabels: {'': a}}}"),
        'spec.members[0].selector.labelMatch.matchLabels: "" is not a label key: name part must be non-empty',
    ),
    "a zone without a type": (ZONES, "NodeResourceTopology", "zones: [{name: z}]", "zones[0].type: is required"),
    "a zone with an empty name": (
        ZONES,
        "NodeResourceTopology",
        "zones: [{name: '', type: Node}]",
        "zones[0].name: is required",
    ),
    "two zones of one name": (
        ZONES,
        "NodeResourceTopology",
        "zones: [{name: z, type: Node}, {name: z, type: Node}]",
        'zones[1].name: "z" is named twice',
    ),
    "a resource without its rest": (
        ZONES,
        "NodeResourceTopology",
        zone("{name: cpu, capacity: 1, allocatable: 1}"),
        "zones[0].resources[0].available: is required",
    ),
    "a resource twice": (
        ZONES,
        "NodeResourceTopology",
        zone(", ".join(["{name: cpu, capacity: 1, allocatable: 1, available: 1}"] * 2)),
        'zones[0].resources[1].name: "cpu" is named twice',
    ),
    "less than nothing left": (
        ZONES,
        "NodeResourceTopology",
        zone("{name: cpu, capacity: 1, allocatable: 1, available: -1}"),
        'zones[0].resources[0].available: Invalid value: "-1": must be greater than or equal to 0',
    ),
}


@pytest.mark.parametrize(("version", "kind", "body", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_topology_is_refused_in_one_line(version: str, kind: str, body: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text(version, kind, body), "t.yaml")
    assert str(refusal.value) == f"t.yaml: document 1 ({kind} t): {complaint}"
