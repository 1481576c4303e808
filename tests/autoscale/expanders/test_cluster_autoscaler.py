"""The expanders decide as Cluster Autoscaler's rules written down a second time, and these as the real program."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from bench.random_clusters import GIB_OF_CORE, Cluster, random_cluster
from bench.scaling_oracles import cluster_autoscaler_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from build.cluster_api import Api
from build.cluster_autoscaler_scenarios import SCENARIOS
from build.depth import examples
from build.literal_cluster_autoscaler import (
    Group,
    GroupOption,
    Outcome,
    Pods,
    Scenario,
    first_growth,
    outcomes,
)
from build.real_cluster_autoscaler import real_outcome
from shoal.api.priority_expander import Priorities, priorities_of
from shoal.autoscale.expanders.expanders import (
    Expander,
    by_priority,
    in_chain,
    least_nodes,
    least_waste,
    most_pods,
)
from shoal.autoscale.expanders.options import GroupTemplate, ScaleUpOption, ServedPod
from shoal.units.errors import UserError

_MIB = 1 << 20
_BINARY = "SHOAL_CLUSTER_AUTOSCALER"
"""The variable with the path of a Cluster Autoscaler that was built with `-tags kwok`."""
_PLAIN_SEEDS = tuple(range(0, 200, 5))
"""Of random clusters whose pods have neither gangs nor parts of GPUs."""


def by_expanders(scenario: Scenario, options: Sequence[GroupOption]) -> list[GroupOption]:
    """The choice of the product."""
    known: dict[str, Expander] = {
        "least-waste": least_waste,
        "least-nodes": least_nodes,
        "most-pods": most_pods,
        "priority": partial(by_priority, priorities=_priorities(scenario.priorities)),
    }
    kept = in_chain([_option(each) for each in options], [known[name] for name in scenario.expanders])
    names = {each.group for each in kept}
    return [each for each in options if each.group.name in names]


def _priorities(text: str | None) -> Priorities | None:
    try:
        return priorities_of(text or "")
    except UserError:
        return None


def _option(option: GroupOption) -> ScaleUpOption:
    group = option.group
    template = GroupTemplate(group.cpu_milli, group.memory_mib * _MIB, group.gpus > 0)
    pods = tuple(ServedPod(pod.name, pod.cpu_milli, pod.memory_mib * _MIB) for pod in option.pods)
    return ScaleUpOption(group.name, option.nodes, template, pods)


def test_there_are_thirty_different_scenarios() -> None:
    assert len({each.name for each in SCENARIOS}) == 30
    assert sum(outcomes(each) != {frozenset((g.name, g.size) for g in each.groups)} for each in SCENARIOS) > 25


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_the_expanders_choose_as_the_literal_rules(scenario: Scenario) -> None:
    assert outcomes(scenario, by_expanders) == outcomes(scenario)


_GROUPS = st.lists(
    st.builds(
        Group,
        st.sampled_from(["a", "b", "ab", "c"]),
        st.sampled_from([4_000, 8_000, 16_000]),
        st.sampled_from([8_192, 16_384, 65_536]),
        st.integers(0, 2),
        size=st.integers(0, 2),
        most=st.integers(0, 4),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda group: group.name,
)
_PODS = st.lists(
    st.builds(
        Pods,
        st.sampled_from(["p", "q"]),
        st.integers(1, 5),
        st.sampled_from([500, 2_000, 5_000]),
        st.sampled_from([1_024, 6_144]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda pods: pods.name,
)
_CHAINS = st.lists(
    st.sampled_from(["least-waste", "most-pods", "least-nodes", "priority"]), min_size=1, max_size=3, unique=True
)
_TEXTS = st.sampled_from(
    [None, "", "5:\n  - a\n", "-1:\n  - a\n1:\n  - b\n", "-7:\n  - c\n", "3:\n  - ^b\n3:\n  - c\n", "x"]
)


@settings(max_examples=examples(60), deadline=None)
@given(st.builds(Scenario, st.just(""), _GROUPS.map(tuple), _PODS.map(tuple), _CHAINS.map(tuple), _TEXTS))
def test_the_expanders_choose_as_the_literal_rules_on_random_groups(scenario: Scenario) -> None:
    assert first_growth(scenario, by_expanders) == first_growth(scenario)


def scenario_of(cluster: Cluster) -> Scenario:
    """A group for each machine and zone. The kubelet's share makes up for the pod that templates of groups have."""
    groups = tuple(
        Group(f"{one.name}-{zone}", one.cores * 1000, one.cores * GIB_OF_CORE * 1024, one.gpus, reserved_milli=-100)
        for one in cluster.machines
        for zone, _ in one.prices
    )
    pods = tuple(
        Pods(f"p{number}", 1, item.cores * 1000, item.gib * 1024, item.gpus)
        for number, item in enumerate(cluster.items)
    )
    return Scenario("", groups, pods)


@pytest.mark.parametrize("seed", _PLAIN_SEEDS)
def test_the_oracle_of_the_benchmarks_plans_as_the_literal_rules(seed: int) -> None:
    cluster = random_cluster(seed)
    scenario = scenario_of(cluster)
    sizes = {group.name: 0 for group in scenario.groups}
    for machine in cluster_autoscaler_plan(cluster):
        sizes[f"{machine.machine}-{machine.zone}"] += 1
    assert frozenset(sizes.items()) in outcomes(scenario)


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    kubeconfig = os.environ.get("SHOAL_TEST_KUBECONFIG")
    if not kubeconfig or _BINARY not in os.environ:
        pytest.skip(f"needs {_BINARY} and SHOAL_TEST_KUBECONFIG, an empty cluster without controllers and nodes")
    async with Api.open(Path(kubeconfig)) as client:
        yield client


@pytest.mark.external
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
async def test_the_real_cluster_autoscaler_grows_the_same_groups(api: Api, scenario: Scenario, tmp_path: Path) -> None:
    first, last = await real_outcome(api, os.environ["SHOAL_TEST_KUBECONFIG"], os.environ[_BINARY], scenario, tmp_path)
    assert _sizes(first) in _all(first_growth(scenario, by_expanders))
    assert _sizes(last) in _all(outcomes(scenario, by_expanders))


def _all(found: set[Outcome]) -> list[dict[str, int]]:
    return [_sizes(each) for each in found]


def _sizes(outcome: Outcome) -> dict[str, int]:
    return dict(sorted(outcome))
