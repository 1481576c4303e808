"""Gangs as four ecosystems write them, and what is refused of each."""

from typing import Any

import pytest

from shoal.api.decode import read
from shoal.api.groups.coscheduling import CoschedulingPodGroup
from shoal.api.groups.kai import KaiPodGroup
from shoal.api.groups.kubernetes import PodGroup, Workload
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.pod import Pod, SchedulingGroup, WorkloadReference
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

VOLCANO = "scheduling.volcano.sh/v1beta1"
KAI = "scheduling.run.ai/v2alpha2"
COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
UPSTREAM = "scheduling.k8s.io/v1beta1"


def text(version: str, spec: str, kind: str = "PodGroup") -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: g}}\nspec: {spec}\n"


def only(version: str, spec: str, kind: str = "PodGroup") -> Any:
    (document,) = read(text(version, spec, kind), "g.yaml")
    return document.value


def test_a_volcano_group_is_read_with_its_roles_and_its_tiers() -> None:
    group = only(
        VOLCANO,
        "{minMember: 4, minTaskMember: {worker: 3}, queue: q, minResources: {nvidia.com/gpu: 4},"
        " networkTopology: {mode: soft, highestTierName: rack}, subGroupPolicy: [{name: tp, subGroupSize: 2,"
        " minSubGroups: 2, matchLabelKeys: [index], networkTopology: {highestTierAllowed: 1}}]}",
    )
    assert isinstance(group, VolcanoPodGroup)
    assert group.spec.min_task_member == {"worker": 3}
    assert group.spec.min_resources == {"nvidia.com/gpu": Quantity.of(4)}
    assert group.spec.network_topology is not None
    assert not group.spec.network_topology.is_required()
    (policy,) = group.spec.sub_group_policy
    assert (policy.sub_group_size, policy.min_sub_groups) == (2, 2)
    assert policy.network_topology is not None
    assert policy.network_topology.is_required()


def test_a_kai_group_is_a_tree() -> None:
    group = only(
        KAI,
        "{minMember: 3, preemptibility: non-preemptible, minSubGroup: 1, topologyConstraint: {topology: dc,"
        " requiredTopologyLevel: rack}, subGroups: [{name: prefill, minSubGroup: 2},"
        " {name: a, parent: prefill, minMember: 1}, {name: b, parent: prefill, minMember: 2}]}",
    )
    assert isinstance(group, KaiPodGroup)
    assert [part.name for part in group.spec.children()] == ["prefill"]
    assert [part.name for part in group.spec.children("prefill")] == ["a", "b"]
    assert group.spec.topology_constraint is not None
    assert group.spec.topology_constraint.required_topology_level == "rack"


PREEMPTIBLE = {
    "labels write it with a dash": ("non-preemptible", False),
    "constants without": ("NonPreemptible", False),
    "one that may yield": ("Preemptible", True),
    "one that leaves it to its priority": ("''", None),
}


@pytest.mark.parametrize(("word", "want"), PREEMPTIBLE.values(), ids=PREEMPTIBLE)
def test_whether_a_kai_group_yields(word: str, want: bool | None) -> None:
    assert only(KAI, f"{{preemptibility: {word}}}").spec.is_preemptible() is want


def test_a_coscheduling_group_is_read() -> None:
    group = only(COSCHEDULING, "{minMember: 3, minResources: {cpu: 1500m}, scheduleTimeoutSeconds: 10}")
    assert isinstance(group, CoschedulingPodGroup)
    assert (group.spec.min_member, group.spec.schedule_timeout_seconds) == (3, 10)


def test_a_workload_knows_its_groups_by_name() -> None:
    workload = only(
        "scheduling.k8s.io/v1alpha1",
        "{podGroups: [{name: driver, policy: {basic: {}}}, {name: workers, policy: {gang: {minCount: 8}}}]}",
        "Workload",
    )
    assert isinstance(workload, Workload)
    counts = {group.name: group.policy.min_count() for group in workload.spec.pod_groups}
    assert counts == {"driver": 0, "workers": 8}
    assert workload.group("workers") is workload.spec.pod_groups[1]
    assert workload.group("masters") is None


def test_a_kubernetes_group_is_read() -> None:
    group = only(
        UPSTREAM,
        "{schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: All, priority: 7,"
        " schedulingConstraints: {topology: [{key: example.com/rack}]}, parentCompositePodGroupName: all,"
        " resourceClaims: [{name: fabric, resourceClaimName: f}]}",
    )
    assert isinstance(group, PodGroup)
    assert group.spec.scheduling_policy.min_count() == 4
    assert group.spec.is_evicted_whole()
    assert group.spec.scheduling_constraints is not None
    assert [one.key for one in group.spec.scheduling_constraints.topology] == ["example.com/rack"]


GANG = "schedulingPolicy: {gang: {minCount: 1}}"
MODES = {
    "the first words": ("v1alpha2", "PodGroup", True),
    "the first words, one by one": ("v1alpha2", "Pod", False),
    "the later words": ("v1alpha3", "All", True),
    "the later words, one by one": ("v1beta1", "Single", False),
    "no word": ("v1beta1", "''", False),
}


@pytest.mark.parametrize(("version", "mode", "whole"), MODES.values(), ids=MODES)
def test_a_group_yields_whole_or_pod_by_pod(version: str, mode: str, whole: bool) -> None:
    group = only(f"scheduling.k8s.io/{version}", f"{{{GANG}, disruptionMode: {mode}}}")
    assert group.spec.is_evicted_whole() is whole


def test_a_pod_names_its_group_in_two_ways() -> None:
    spec = "{containers: [{}], schedulingGroup: {podGroupName: g}, workloadRef: {name: w, podGroup: p}}"
    pod = only("v1", spec, "Pod")
    assert isinstance(pod, Pod)
    assert pod.spec.scheduling_group == SchedulingGroup("g")
    assert pod.spec.workload_ref == WorkloadReference("w", "p")


def parts(*parts: str) -> str:
    return f"{{subGroups: [{', '.join(f'{{{part}}}' for part in parts)}]}}"


BAD = {
    "fewer than no members": (VOLCANO, "{minMember: -1}", "spec.minMember: must be at least 0, got -1"),
    "more members than a machine word": (
        VOLCANO,
        "{minMember: 3000000000}",
        "spec.minMember: must be at most 2147483647, got 3000000000",
    ),
    "fewer than none of a role": (
        VOLCANO,
        "{minTaskMember: {worker: -1}}",
        "spec.minTaskMember.worker: must be at least 0, got -1",
    ),
    "less than nothing": (
        VOLCANO,
        "{minResources: {cpu: -1}}",
        'spec.minResources.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ),
    "half a device": (
        COSCHEDULING,
        "{minResources: {nvidia.com/gpu: 500m}}",
        (
            'spec.minResources[nvidia.com/gpu]: Invalid value: "500m": must be an integer; '
            "devices and other extended resources are counted in whole numbers"
        ),
    ),
    "a topology that is neither": (
        VOLCANO,
        "{networkTopology: {mode: firm}}",
        'spec.networkTopology.mode: unsupported value "firm"; supported values are hard, soft',
    ),
    "a tier by number and by name": (
        VOLCANO,
        "{networkTopology: {highestTierAllowed: 1, highestTierName: rack}}",
        "spec.networkTopology: highestTierAllowed and highestTierName cannot be both set",
    ),
    "a tier by number and by name in a part": (
        VOLCANO,
        "{subGroupPolicy: [{name: a, networkTopology: {highestTierAllowed: 1, highestTierName: rack}}]}",
        "spec.subGroupPolicy[0].networkTopology: highestTierAllowed and highestTierName cannot be both set",
    ),
    "a part without a name": (
        VOLCANO,
        "{subGroupPolicy: [{subGroupSize: 2}]}",
        "spec.subGroupPolicy[0].name: is required",
    ),
    "a part with an empty name": (
        VOLCANO,
        "{subGroupPolicy: [{name: ''}]}",
        "spec.subGroupPolicy[0].name: is required",
    ),
    "two parts of one name": (
        VOLCANO,
        "{subGroupPolicy: [{name: a}, {name: a}]}",
        'spec.subGroupPolicy[1].name: "a" is named twice',
    ),
    "a part by an impossible label": (
        VOLCANO,
        "{subGroupPolicy: [{name: a, matchLabelKeys: ['']}]}",
        'spec.subGroupPolicy[0].matchLabelKeys[0]: "" is not a label key: name part must be non-empty',
    ),
    "a part by one label twice": (
        VOLCANO,
        "{subGroupPolicy: [{name: a, matchLabelKeys: [x, x]}]}",
        'spec.subGroupPolicy[0].matchLabelKeys[1]: "x" is named twice',
    ),
    "a part by an impossible selector": (
        VOLCANO,
        "{subGroupPolicy: [{name: a, labelSelector: {matchExpressions: [{key: x, operator: In}]}}]}",
        "spec.subGroupPolicy[0].labelSelector.matchExpressions[0].values: operator In needs at least one value",
    ),
    "a KAI group that yields somehow": (
        KAI,
        "{preemptibility: sometimes}",
        'spec.preemptibility: unsupported value "sometimes"; supported values are preemptible, non-preemptible',
    ),
    "a level of no topology": (
        KAI,
        "{topologyConstraint: {requiredTopologyLevel: rack}}",
        "spec.topologyConstraint.topology: is required to find the level",
    ),
    "a level of no topology in a part": (
        KAI,
        parts("name: a, topologyConstraint: {preferredTopologyLevel: rack}"),
        "spec.subGroups[0].topologyConstraint.topology: is required to find the level",
    ),
    "a KAI part with an empty name": (KAI, parts("name: ''"), "spec.subGroups[0].name: is required"),
    "two KAI parts of one name": (
        KAI,
        parts("name: a", "name: a"),
        'spec.subGroups[1].name: "a" is named twice',
    ),
    "an orphan": (KAI, parts("name: a, parent: b"), 'spec.subGroups[0].parent: "b" is not one of the subGroups'),
    "a part that is its own parent": (
        KAI,
        parts("name: a, parent: a"),
        'spec.subGroups[0].parent: "a" would be its own ancestor',
    ),
    "parts in a circle": (
        KAI,
        parts("name: r", "name: a, parent: b", "name: b, parent: c", "name: c, parent: a"),
        'spec.subGroups[1].parent: "a" would be its own ancestor',
    ),
    "more parts than there are": (
        KAI,
        parts("name: r, minSubGroup: 2", "name: a, parent: r"),
        "spec.subGroups[0].minSubGroup: must be at most 1, the number of subgroups directly below, got 2",
    ),
    "grandchildren are no parts": (
        KAI,
        "{minSubGroup: 2, subGroups: [{name: r}, {name: a, parent: r}]}",
        "spec.minSubGroup: must be at most 1, the number of subgroups directly below, got 2",
    ),
    "no policy": (UPSTREAM, "{}", "spec.schedulingPolicy: is required"),
    "an empty policy": (
        UPSTREAM,
        "{schedulingPolicy: {}}",
        "spec.schedulingPolicy: exactly one of basic and gang is required",
    ),
    "two policies": (
        UPSTREAM,
        "{schedulingPolicy: {basic: {}, gang: {minCount: 1}}}",
        "spec.schedulingPolicy: exactly one of basic and gang is required",
    ),
    "a gang of none": (
        UPSTREAM,
        "{schedulingPolicy: {gang: {minCount: 0}}}",
        "spec.schedulingPolicy.gang.minCount: must be at least 1, got 0",
    ),
    "the first words in a later version": (
        UPSTREAM,
        f"{{{GANG}, disruptionMode: PodGroup}}",
        'spec.disruptionMode: unsupported value "PodGroup" in this version; supported values are Single, All',
    ),
    "the later words in the first version": (
        "scheduling.k8s.io/v1alpha2",
        f"{{{GANG}, disruptionMode: All}}",
        'spec.disruptionMode: unsupported value "All" in this version; supported values are Pod, PodGroup',
    ),
    "a constraint on no label": (
        UPSTREAM,
        f"{{{GANG}, schedulingConstraints: {{topology: [{{key: ''}}]}}}}",
        'spec.schedulingConstraints.topology[0].key: "" is not a label key: name part must be non-empty',
    ),
    "a claim of nothing": (
        UPSTREAM,
        f"{{{GANG}, resourceClaims: [{{name: a}}]}}",
        "spec.resourceClaims[0]: exactly one of resourceClaimName and resourceClaimTemplateName is required",
    ),
    "two claims of one name": (
        UPSTREAM,
        f"{{{GANG}, resourceClaims: [{{name: a, resourceClaimName: x}}, {{name: a, resourceClaimName: z}}]}}",
        'spec.resourceClaims[1].name: "a" is named twice',
    ),
}


@pytest.mark.parametrize(("version", "spec", "complaint"), BAD.values(), ids=BAD)
def test_a_bad_group_is_refused_in_one_line(version: str, spec: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text(version, spec), "g.yaml")
    assert str(refusal.value) == f"g.yaml: document 1 (PodGroup default/g): {complaint}"


BAD_WORKLOADS = {
    "no groups": ("[]", "spec.podGroups: at least one pod group is required"),
    "too many groups": (
        "[" + ", ".join(f"{{name: g{number}, policy: {{basic: {{}}}}}}" for number in range(9)) + "]",
        "spec.podGroups: must have at most 8 items, got 9",
    ),
    "a name with a dot": (
        "[{name: a.b, policy: {basic: {}}}]",
        (
            'spec.podGroups[0].name: "a.b" is not a group name: '
            "must be lowercase letters, digits or '-', and start and end with a letter or digit"
        ),
    ),
    "two groups of one name": (
        "[{name: a, policy: {basic: {}}}, {name: a, policy: {basic: {}}}]",
        'spec.podGroups[1].name: "a" is named twice',
    ),
    "a group without a policy": ("[{name: a}]", "spec.podGroups[0].policy: is required"),
    "a group with two": (
        "[{name: a, policy: {basic: {}, gang: {minCount: 2}}}]",
        "spec.podGroups[0].policy: exactly one of basic and gang is required",
    ),
}


@pytest.mark.parametrize(("groups", "complaint"), BAD_WORKLOADS.values(), ids=BAD_WORKLOADS)
def test_a_bad_workload_is_refused_in_one_line(groups: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("scheduling.k8s.io/v1alpha1", f"{{podGroups: {groups}}}", "Workload"), "w.yaml")
    assert str(refusal.value) == f"w.yaml: document 1 (Workload default/g): {complaint}"


BAD_PODS = {
    "a group without its name": ("schedulingGroup: {}", "spec.schedulingGroup.podGroupName: is required"),
    "a group with an empty name": (
        "schedulingGroup: {podGroupName: ''}",
        "spec.schedulingGroup.podGroupName: is required",
    ),
    "a reference without the group": ("workloadRef: {name: w}", "spec.workloadRef.podGroup: is required"),
    "a reference to nobody": ("workloadRef: {name: '', podGroup: p}", "spec.workloadRef.name: is required"),
}


@pytest.mark.parametrize(("field", "complaint"), BAD_PODS.values(), ids=BAD_PODS)
def test_a_pod_that_names_no_group_is_refused(field: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        read(text("v1", f"{{containers: [{{}}], {field}}}", "Pod"), "p.yaml")
    assert str(refusal.value) == f"p.yaml: document 1 (Pod default/g): {complaint}"
