"""A kube-scheduler configuration becomes profiles of our rules, and whatever has no effect is said."""

from __future__ import annotations

import textwrap

import pytest

from shoal.api.scheduler_config import read_scheduler_config
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import RANDOM, TIGHTEST
from shoal.engine.device_demand import GpuShare, WholeGpus
from shoal.engine.domains.soft import Soft
from shoal.engine.events import NodeFacts, NodeSeen
from shoal.engine.intake import Intake
from shoal.engine.kube_profile import MOST_WEIGHT, OWN_PLUGINS, KubeProfile, KubeProfiles, kube_profiles
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.profile import POLICIES
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore, ShapePoint
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.units.errors import UserError

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MIX = PodMix.of([PodClass(1000, 500, 1)])

CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
LEAST = ResourceAllocationScore("LeastAllocated", CPU_AND_MEMORY)
BALANCED = BalancedAllocation(CPU_AND_MEMORY)

NOT_YET = {
    "ImageLocality": "which images a node holds is not known",
    "NodeVolumeLimits": "how many volumes a node can attach is not counted",
}


def read(text: str) -> KubeProfiles:
    return kube_profiles(read_scheduler_config(HEAD + textwrap.dedent(text), "s.yaml", OWN_PLUGINS))


def profile(plugins: str = "", args: str = "") -> KubeProfile:
    text = "profiles:\n- schedulerName: gpu\n"
    text += f"  plugins: {plugins}\n" if plugins else ""
    text += f"  pluginConfig: {args}\n" if args else ""
    (only,) = read(text).profiles
    return only


def scored(got: KubeProfile) -> dict[object, int]:
    """Rules without arguments are known by their type."""
    rules = (*got.static_scores, *got.node_scores)
    return {type(rule) if isinstance(rule, PreferredAffinity | SoftTaints) else rule: weight for rule, weight in rules}


DEFAULTS = {PreferredAffinity: 2, SoftTaints: 3, LEAST: 1, BALANCED: 1}
NOTHING_ELSE = "disabled: [{name: '*'}]"

SCORES: dict[str, tuple[str, str, dict[object, int]]] = {
    "nothing said means kube-scheduler's defaults": ("", "", DEFAULTS),
    "a weight": (
        "{score: {enabled: [{name: NodeResourcesFit, weight: 100}]}}",
        "",
        {**DEFAULTS, LEAST: 100},
    ),
    "one score alone": (
        f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: TaintToleration}}]}}}}",
        "",
        {SoftTaints: 1},
    ),
    "packing of GPUs": (
        f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: NodeResourcesFit, weight: 7}}]}}}}",
        (
            "[{name: NodeResourcesFit, args: {scoringStrategy: "
            "{type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 9}, {name: cpu}]}}}]"
        ),
        {ResourceAllocationScore("MostAllocated", (("nvidia.com/gpu", 9), ("cpu", 1))): 7},
    ),
    "a curve, from scores of ten to points of a hundred": (
        f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: NodeResourcesFit}}]}}}}",
        (
            "[{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, "
            "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 80, score: 10}]}}}}]"
        ),
        {
            ResourceAllocationScore(
                "RequestedToCapacityRatio", CPU_AND_MEMORY, (ShapePoint(0, 0), ShapePoint(80, 100))
            ): 1
        },
    ),
    "balance over other resources": (
        f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: NodeResourcesBalancedAllocation}}]}}}}",
        "[{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu}, {name: nvidia.com/gpu}]}}]",
        {BalancedAllocation((("cpu", 1), ("nvidia.com/gpu", 1))): 1},
    ),
}


@pytest.mark.parametrize(("plugins", "args", "want"), SCORES.values(), ids=SCORES)
def test_scores(plugins: str, args: str, want: dict[object, int]) -> None:
    assert scored(profile(plugins, args)) == want


COMPANY: dict[str, tuple[str, str, Soft]] = {
    "kube-scheduler's own weights": ("", "", Soft(affinity=2, spread=2)),
    "not scored at all": (f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: TaintToleration}}]}}}}", "", Soft()),
    "arguments of the plugin": (
        "{score: {enabled: [{name: PodTopologySpread, weight: 9}]}}",
        "[{name: InterPodAffinity, args: {hardPodAffinityWeight: 7, ignorePreferredTermsOfExistingPods: true}}]",
        Soft(affinity=2, spread=9, required_too=7, others_too=False),
    ),
}


@pytest.mark.parametrize(("plugins", "args", "want"), COMPANY.values(), ids=COMPANY)
def test_what_preferences_about_other_pods_weigh(plugins: str, args: str, want: Soft) -> None:
    got = profile(plugins, args)
    assert got.soft == want
    assert got.build(Cluster(), MIX).soft == want


def told(names: dict[str, str]) -> tuple[str, ...]:
    return tuple(f"gpu: {name}: {why}" for name, why in names.items())


EVERYTHING_OFF = "multiPoint: {disabled: [{name: '*'}]}"
OURS = (
    "[{name: NodeUnschedulable}, {name: NodeName}, {name: TaintToleration}, "
    "{name: NodeAffinity}, {name: NodePorts}, {name: NodeResourcesFit}, "
    "{name: PodTopologySpread}, {name: InterPodAffinity}]"
)

WARNINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "what the defaults do and we do not": ("{}", told(NOT_YET)),
    "only what is switched on": (f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS}}}}}", ()),
    "a plugin that only scores": (
        f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS}}}, score: {{enabled: [{{name: ImageLocality}}]}}}}",
        told({"ImageLocality": NOT_YET["ImageLocality"]}),
    ),
    "a hard rule switched off holds all the same": (
        f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS.replace('{name: NodePorts}, ', '')}}}}}",
        told({"NodePorts": "cannot be switched off as a filter"}),
    ),
    "a plugin of others": (
        f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS}}}, permit: {{enabled: [{{name: Coscheduling}}]}}}}",
        (
            (
                "s.yaml: document 1 (KubeSchedulerConfiguration): profiles[0]: "
                "plugins: Coscheduling is not known here and does nothing"
            ),
        ),
    ),
    "our policy is not a stranger": (
        f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS}}}, score: {{enabled: [{{name: Shoal}}]}}}}",
        (),
    ),
    "our policy is no filter": (
        f"{{{EVERYTHING_OFF}, filter: {{enabled: [{{name: Shoal}}, {OURS[1:]}}}}}",
        (
            (
                "s.yaml: document 1 (KubeSchedulerConfiguration): profiles[0]: "
                "plugins: Shoal is not known here and does nothing"
            ),
        ),
    ),
    "chance cannot be weighed": (
        (
            f"{{{EVERYTHING_OFF}, filter: {{enabled: {OURS}}}, "
            "score: {enabled: [{name: Random}, {name: TaintToleration}]}}"
        ),
        told({"Random": "has no effect beside other scores; disable those with '*'"}),
    ),
}


@pytest.mark.parametrize(("plugins", "want"), WARNINGS.values(), ids=WARNINGS)
def test_warnings(plugins: str, want: tuple[str, ...]) -> None:
    assert read(f"profiles: [{{schedulerName: gpu, plugins: {plugins}}}]").warnings == want


def test_a_plugin_is_warned_of_once_for_all_profiles() -> None:
    warnings = read("profiles: [{schedulerName: a}, {schedulerName: b}]").warnings
    assert warnings == tuple(f"a, b: {name}: {why}" for name, why in NOT_YET.items())


def test_resources_to_ignore_are_warned_of() -> None:
    args = "[{name: NodeResourcesFit, args: {ignoredResources: [example.com/foo]}}]"
    warnings = read(f"profiles: [{{schedulerName: gpu, pluginConfig: {args}}}]").warnings
    assert "gpu: NodeResourcesFit: ignoredResources and ignoredResourceGroups are not ignored" in warnings


def test_constraints_for_pods_that_services_select_are_warned_of() -> None:
    args = (
        "[{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: "
        "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}]"
    )
    warnings = read(f"profiles: [{{schedulerName: gpu, pluginConfig: {args}}}]").warnings
    assert any("defaultConstraints have no effect" in warning for warning in warnings)


def test_what_the_reading_warned_of_is_passed_on() -> None:
    assert "every node is scored" in read("percentageOfNodesToScore: 20").warnings[0]


def test_no_configuration_at_all_is_one_default_profile() -> None:
    got = read("")
    assert [each.scheduler_name for each in got.profiles] == ["default-scheduler"]
    assert got.profile("default-scheduler") is got.profiles[0]
    assert got.profile("gpu") is None


def test_affinity_added_by_the_profile_is_handed_on() -> None:
    args = (
        "[{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}}}}]"
    )
    added = profile(args=args).added_affinity
    assert added is not None
    assert added.required is not None
    assert added.required.matches("n", {"pool": "x"})


def test_weights_that_no_key_could_hold_are_refused() -> None:
    with pytest.raises(UserError) as caught:
        profile(f"{{score: {{enabled: [{{name: NodeResourcesFit, weight: {MOST_WEIGHT}}}]}}}}")
    assert str(caught.value) == "profile gpu: the weights of its scores add up to 1000011; at most 1000000 are possible"


# -- with a cluster -------------------------------------------------------------------------------------------


def fleet() -> Cluster:
    intake = Intake(Cluster())
    for name, cpu in (("big", 64000), ("small", 16000)):
        amounts = {"cpu": cpu, "memory": cpu << 20, "pods": 10}
        intake.apply(NodeSeen(NodeFacts(name, amounts, gpus=4, gpu_model="T4")))
    return intake.cluster


def winner(got: KubeProfile, ask: Ask) -> str:
    cluster = fleet()
    placement = Placement(cluster, got.build(cluster, MIX))
    placement.renew()
    chosen = placement.choose(cluster.charge(ask), 0)
    assert chosen is not None
    return cluster.names[chosen[0]]


CPU_ONLY = Ask(requests=(("cpu", 4000),))


def test_the_default_profile_spreads_and_a_packing_profile_packs() -> None:
    assert winner(profile(), CPU_ONLY) == "big"
    packing = "[{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}}]"
    only = f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: NodeResourcesFit}}]}}}}"
    assert winner(profile(only, packing), CPU_ONLY) == "small"


@pytest.mark.parametrize("name", OWN_PLUGINS)
def test_each_of_our_policies_places_by_its_name(name: str) -> None:
    got = profile(f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: {name}, weight: 3}}]}}}}")
    assert got.policies == ((name, 3),)
    assert winner(got, Ask(requests=(("cpu", 1000),), devices=GpuShare(500))) in {"big", "small"}
    assert winner(got, Ask(requests=(("cpu", 1000),), devices=WholeGpus(2))) in {"big", "small"}


def test_a_policy_alone_decides_as_it_does_at_home() -> None:
    cluster = fleet()
    home = POLICIES["BestFit"](cluster, MIX)
    got = profile(f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: BestFit}}]}}}}").build(cluster, MIX)
    ask = Ask(requests=(("cpu", 1000),), devices=WholeGpus(2))
    keys = [Placement(cluster, each).shape(cluster.charge(ask)).keys().tolist() for each in (home, got)]
    assert keys[0] == keys[1]


def test_the_heaviest_policy_chooses_the_devices() -> None:
    both = profile("{score: {enabled: [{name: BestFit, weight: 2}, {name: FGD, weight: 5}]}}")
    assert both.policies == (("FGD", 5), ("BestFit", 2))
    assert profile().build(fleet(), MIX).devices is TIGHTEST


def test_chance_alone_is_chance() -> None:
    got = profile(f"{{score: {{{NOTHING_ELSE}, enabled: [{{name: Random}}]}}}}").build(fleet(), MIX)
    assert (got.at_random, got.devices) == (True, RANDOM)


def test_keys_follow_the_tables_of_every_policy() -> None:
    got = profile("{score: {enabled: [{name: Shoal}]}}").build(fleet(), MIX)
    assert got.epoch() > 0
    assert got.epoch() == got.epoch()
