"""A kube-scheduler configuration becomes filters, weighted scores and their arguments, or is refused by field."""

import textwrap

import pytest

from shoal.api.scheduler_config import SchedulerConfig, SchedulerProfile, read_scheduler_config
from shoal.units.errors import UserError

DEFAULT_SCORES = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def config(body: str, version: str = "v1") -> SchedulerConfig:
    head = f"apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n"
    return read_scheduler_config(head + textwrap.dedent(body), "s.yaml")


def profile(plugins: str = "", args: str = "") -> SchedulerProfile:
    text = "profiles:\n- schedulerName: gpu\n"
    if plugins:
        text += f"  plugins: {plugins}\n"
    if args:
        text += f"  pluginConfig: {args}\n"
    return config(text).profiles[0]


PLUGINS: dict[str, tuple[str, dict[str, int]]] = {
    "nothing said means the defaults": ("", DEFAULT_SCORES),
    "a weight of its own": (
        "{score: {enabled: [{name: NodeResourcesFit, weight: 100}]}}",
        {**DEFAULT_SCORES, "NodeResourcesFit": 100},
    ),
    "named without a weight it counts once": (
        "{score: {enabled: [{name: TaintToleration}]}}",
        {**DEFAULT_SCORES, "TaintToleration": 1},
    ),
    "one score less": (
        "{score: {disabled: [{name: ImageLocality}]}}",
        {name: weight for name, weight in DEFAULT_SCORES.items() if name != "ImageLocality"},
    ),
    "one score only": (
        "{score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit, weight: 5}]}}",
        {"NodeResourcesFit": 5},
    ),
    "a weight for all points": (
        "{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}}",
        {**DEFAULT_SCORES, "NodeAffinity": 7},
    ),
    "the weight of the point wins": (
        (
            "{multiPoint: {enabled: [{name: NodeAffinity, weight: 7}]}, "
            "score: {enabled: [{name: NodeAffinity, weight: 9}]}}"
        ),
        {**DEFAULT_SCORES, "NodeAffinity": 9},
    ),
    "nothing but one plugin at all points": (
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesFit}]}}",
        {"NodeResourcesFit": 1},
    ),
    "one plugin at no point": (
        "{multiPoint: {disabled: [{name: TaintToleration}]}}",
        {name: weight for name, weight in DEFAULT_SCORES.items() if name != "TaintToleration"},
    ),
}


@pytest.mark.parametrize(("plugins", "want"), PLUGINS.values(), ids=PLUGINS)
def test_scores(plugins: str, want: dict[str, int]) -> None:
    assert dict(profile(plugins).scores) == want


def test_filters_are_disabled_apart_from_scores() -> None:
    got = profile("{filter: {disabled: [{name: TaintToleration}]}}")
    assert "TaintToleration" not in got.filters
    assert dict(got.scores)["TaintToleration"] == 3
    assert {"NodeResourcesFit", "NodeUnschedulable", "NodePorts"} <= set(got.filters)


def test_preemption_can_be_switched_off_in_two_ways() -> None:
    assert profile().can_preempt
    assert not profile("{postFilter: {disabled: [{name: '*'}]}}").can_preempt
    assert not profile("{multiPoint: {disabled: [{name: DefaultPreemption}]}}").can_preempt


def test_the_default_strategy_spreads_cpu_and_memory() -> None:
    strategy = profile().fit.scoring_strategy
    assert (strategy.type, strategy.weights()) == ("LeastAllocated", (("cpu", 1), ("memory", 1)))


def test_a_packing_strategy_with_its_resources() -> None:
    got = profile(
        args="[{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1, "
        "kind: NodeResourcesFitArgs, ignoredResourceGroups: [example.com], scoringStrategy: "
        "{type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 100}, {name: cpu, weight: 0}]}}}]"
    )
    assert got.fit.scoring_strategy.weights() == (("nvidia.com/gpu", 100), ("cpu", 1))
    assert got.fit.is_ignored("example.com/foo")
    assert not got.fit.is_ignored("nvidia.com/gpu")


def test_a_shape_is_read_as_points() -> None:
    got = profile(
        args="[{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, "
        "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}}]"
    )
    assert got.fit.scoring_strategy.shape() == ((0, 0), (100, 10))


def test_other_plugins_have_their_arguments_too() -> None:
    got = profile(
        args="[{name: NodeResourcesBalancedAllocation, args: {resources: [{name: nvidia.com/gpu, weight: 1}]}}, "
        "{name: InterPodAffinity, args: {hardPodAffinityWeight: 5}}, "
        "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: "
        "[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}}, "
        "{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [gpu]}]}]}}}}]"
    )
    assert got.balanced.names() == ("nvidia.com/gpu",)
    assert got.pod_affinity.hard_pod_affinity_weight == 5
    assert got.topology_spread.default_constraints[0].topology_key == "zone"
    added = got.node_affinity.added_affinity
    assert added is not None
    assert added.required is not None
    assert added.required.matches("n", {"pool": "gpu"})


def test_several_profiles_are_told_apart_by_name() -> None:
    got = config("profiles:\n- schedulerName: a\n- schedulerName: b\n")
    found = got.profile("b")
    assert found is not None
    assert found.scheduler_name == "b"
    assert got.profile("c") is None


def test_without_profiles_there_is_the_default_one() -> None:
    assert [p.scheduler_name for p in config("leaderElection: {leaderElect: true}").profiles] == ["default-scheduler"]


def test_the_current_version_gives_no_warning() -> None:
    assert config("percentageOfNodesToScore: 0\nparallelism: 16\n").warnings == ()


WARNINGS = {
    "the retired version": (("", "v1beta3"), "v1beta3 was removed in Kubernetes 1.29"),
    "extenders": (("extenders: [{urlPrefix: 'http://x'}]", "v1"), "extenders: are not called"),
    "sampling": (("percentageOfNodesToScore: 30", "v1"), "every node is scored"),
    "a plugin of somebody else": (
        ("profiles: [{plugins: {filter: {enabled: [{name: Coscheduling}]}}}]", "v1"),
        "s.yaml: document 1 (KubeSchedulerConfiguration): profiles[0]: plugins: Coscheduling is not known here",
    ),
    "arguments of somebody else's plugin": (
        ("profiles: [{pluginConfig: [{name: Coscheduling, args: {a: 1}}]}]", "v1"),
        "profiles[0]: pluginConfig[0]: arguments of Coscheduling have no effect here",
    ),
}


@pytest.mark.parametrize(("given", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_what_makes_no_difference_is_said(given: tuple[str, str], warning: str) -> None:
    (said,) = config(*given).warnings
    assert warning in said


def test_a_plugin_of_somebody_else_takes_no_part() -> None:
    got = profile("{score: {enabled: [{name: Custom, weight: 9}]}}")
    assert "Custom" not in dict(got.scores)


def test_a_config_map_is_opened() -> None:
    got = read_scheduler_config(
        textwrap.dedent("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: c}
        data:
          other: "x"
          config.yaml: |
            apiVersion: kubescheduler.config.k8s.io/v1beta3
            kind: KubeSchedulerConfiguration
            profiles:
            - schedulerName: gpu
        """),
        "c.yaml",
    )
    assert got.profiles[0].scheduler_name == "gpu"
    assert got.warnings[0].startswith("c.yaml: document 1 (ConfigMap c): data[config.yaml]: ")


def fit(args: str) -> str:
    return f"profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {args}}}]}}]"


def shape(points: str) -> str:
    ratio = f"{{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {points}}}}}"
    return fit(f"{{scoringStrategy: {ratio}}}")


STRATEGY = "profiles[0].pluginConfig[0].args.scoringStrategy"
REFUSED = {
    "an unknown strategy": (
        fit("{scoringStrategy: {type: Random}}"),
        (
            f'{STRATEGY}.type: unsupported value "Random"; '
            "supported values are LeastAllocated, MostAllocated, RequestedToCapacityRatio"
        ),
    ),
    "a weight beyond a hundred": (
        fit("{scoringStrategy: {resources: [{name: cpu, weight: 101}]}}"),
        f"{STRATEGY}.resources[0].weight: must be at most 100, got 101",
    ),
    "a resource named twice": (
        fit("{scoringStrategy: {resources: [{name: cpu}, {name: cpu}]}}"),
        f'{STRATEGY}.resources[1].name: "cpu" is named twice',
    ),
    "a ratio without its shape": (
        fit("{scoringStrategy: {type: RequestedToCapacityRatio}}"),
        f"{STRATEGY}.requestedToCapacityRatio.shape: at least one point must be specified",
    ),
    "a shape without its strategy": (
        fit("{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: []}}}"),
        f"{STRATEGY}.requestedToCapacityRatio: is only for type RequestedToCapacityRatio",
    ),
    "a shape that turns back": (
        shape("[{utilization: 50, score: 1}, {utilization: 50, score: 2}]"),
        f"{STRATEGY}.requestedToCapacityRatio.shape[1].utilization: values must be sorted in increasing order",
    ),
    "a utilization beyond a hundred": (
        shape("[{utilization: 101, score: 1}]"),
        f"{STRATEGY}.requestedToCapacityRatio.shape[0].utilization: must be at most 100, got 101",
    ),
    "a score beyond ten": (
        shape("[{utilization: 1, score: 11}]"),
        f"{STRATEGY}.requestedToCapacityRatio.shape[0].score: must be at most 10, got 11",
    ),
    "a misspelt field": (
        fit("{scoringStrategie: {}}"),
        "profiles[0].pluginConfig[0].args.scoringStrategie: unknown field",
    ),
    "a misspelt field at the top": ("profile: []", "profile: unknown field"),
    "arguments of another plugin": (
        fit("{kind: NodeAffinityArgs}"),
        'profiles[0].pluginConfig[0].args.kind: "NodeAffinityArgs" has to match plugin NodeResourcesFit',
    ),
    "a plugin configured twice": (
        "profiles: [{pluginConfig: [{name: NodeAffinity}, {name: NodeAffinity}]}]",
        'profiles[0].pluginConfig[1].name: plugin "NodeAffinity" is configured twice',
    ),
    "a plugin enabled twice": (
        "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity}, {name: NodeAffinity}]}}}]",
        'profiles[0].plugins.score.enabled[1].name: plugin "NodeAffinity" is enabled twice',
    ),
    "a filter among the scores": (
        "profiles: [{plugins: {score: {enabled: [{name: NodePorts}]}}}]",
        'profiles[0].plugins.score.enabled[0].name: plugin "NodePorts" is not a score plugin',
    ),
    "two profiles of one name": (
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        'profiles[1].schedulerName: duplicate value "a"',
    ),
    "two profiles, one without a name": (
        "profiles: [{schedulerName: a}, {}]",
        "profiles[1].schedulerName: is required",
    ),
    "no profiles": ("profiles: []", "profiles: at least one profile is required"),
    "a percentage beyond a hundred": (
        "percentageOfNodesToScore: 101",
        "percentageOfNodesToScore: must be at most 100, got 101",
    ),
    "an added affinity that is none": (
        (
            "profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
            "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}]}]"
        ),
        (
            "profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
            ".nodeSelectorTerms: must have at least one node selector term"
        ),
    ),
    "a balanced weight other than one": (
        (
            "profiles: [{pluginConfig: [{name: NodeResourcesBalancedAllocation, args: "
            "{resources: [{name: cpu, weight: 2}]}}]}]"
        ),
        "profiles[0].pluginConfig[0].args.resources[0].weight: must be 1, got 2",
    ),
    "default constraints of the system": (
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
            "[{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}]}}]}]"
        ),
        "profiles[0].pluginConfig[0].args.defaultingType: must be List when defaultConstraints are given",
    ),
    "a default constraint with a selector": (
        (
            "profiles: [{pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: "
            "[{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]}}]}]"
        ),
        "profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector: constraint must not define a selector",
    ),
}


@pytest.mark.parametrize(("body", "complaint"), REFUSED.values(), ids=REFUSED)
def test_refused_by_field(body: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        config(body)
    assert str(refusal.value).startswith(f"s.yaml: document 1 (KubeSchedulerConfiguration): {complaint}")


def test_another_version_is_refused() -> None:
    with pytest.raises(UserError, match=r"apiVersion: unsupported value .*/v9"):
        config("", "v9")


def test_a_file_without_a_configuration_is_refused() -> None:
    with pytest.raises(UserError, match=r"n\.yaml: contains no KubeSchedulerConfiguration"):
        read_scheduler_config("apiVersion: v1\nkind: Node\nmetadata: {name: n1}", "n.yaml")
