"""Cluster Autoscaler's choice among node groups."""

from __future__ import annotations

import pytest

from shoal.api.priority_expander import priorities_of
from shoal.autoscale.expanders.expanders import (
    Options,
    at_random,
    by_price,
    by_priority,
    in_chain,
    least_nodes,
    least_waste,
    most_pods,
)
from shoal.autoscale.expanders.options import GroupTemplate, Prices, ScaleUpOption, ServedPod
from shoal.units.errors import UserError

_POD = ServedPod("p", 500, 1 << 30)


def _option(group: str, nodes: int = 1, cpu: int = 4000, pods: int = 1, *, exists: bool = True) -> ScaleUpOption:
    return ScaleUpOption(group, nodes, GroupTemplate(cpu, cpu * (2 << 20)), (_POD,) * pods, exists)


def _names(options: Options) -> list[str]:
    return [option.group for option in options]


def test_the_highest_priority_with_a_match_wins() -> None:
    priorities = priorities_of("10:\n - .*\n50:\n - p5\\.\n - p4\n")
    options = [_option("asg-g5.xlarge"), _option("asg-p5.48xlarge"), _option("asg-p4d")]

    assert _names(by_priority(options, priorities)) == ["asg-p5.48xlarge", "asg-p4d"]


def test_nothing_is_filtered_where_no_priority_matches() -> None:
    options = [_option("a"), _option("b")]

    assert by_priority(options, priorities_of("1: [zzz]")) == options
    assert by_priority(options, None) == options


@pytest.mark.parametrize("text", ["", "- a", "x: [a]", "1: a", "1: ['(']", "1: [[a]]", "a: [", "true: [a]"])
def test_unusable_priorities_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        priorities_of(text)


@pytest.mark.parametrize("text", ['"5": [a]\n1: [b]', "5: [a]\n9:", "5: [a]\n9: [2]", "5: [a]\n9: [true]"])
def test_priorities_are_read_as_liberally_as_by_cluster_autoscaler(text: str) -> None:
    assert _names(by_priority([_option("a"), _option("b")], priorities_of(text))) == ["a"]


def test_priorities_below_minus_one_are_not_used() -> None:
    options = [_option("a"), _option("b")]

    assert by_priority(options, priorities_of("-2: [a]")) == options
    assert _names(by_priority(options, priorities_of("-1: [a]\n-2: [b]"))) == ["a"]


def test_of_a_number_that_is_written_twice_the_last_list_counts() -> None:
    options = [_option("a"), _option("b")]

    assert _names(by_priority(options, priorities_of("5: [a]\n5: [b]"))) == ["b"]


def test_the_least_waste_adds_the_unused_shares_of_cpu_and_memory() -> None:
    tight, loose, unknown = _option("tight", cpu=1000), _option("loose", cpu=8000), ScaleUpOption("unknown", 1)

    assert _names(least_waste([loose, unknown, tight])) == ["tight"]
    assert least_waste([unknown]) == []


def test_ties_are_kept_whole() -> None:
    options = [_option("a", 2, pods=3), _option("b", 2, pods=3), _option("c", 3, pods=2), _option("d", 0, pods=1)]

    assert _names(least_nodes(options)) == ["a", "b"]
    assert _names(most_pods(options)) == ["a", "b"]
    assert _names(most_pods([_option("x", pods=0), _option("y", pods=0)])) == ["x", "y"]


def test_the_price_counts_the_shape_of_nodes_and_groups_that_do_not_exist() -> None:
    prices = Prices({"a": 10.0, "b": 10.0, "gpu": 0.1}, {"p": 1.0}, preferred_cpu_milli=4000)

    assert _names(by_price([_option("a"), _option("b", cpu=16000)], prices)) == ["a"]
    assert _names(by_price([_option("a", exists=False), _option("b")], prices)) == ["b"]
    gpu = ScaleUpOption("gpu", 1, GroupTemplate(4000, 1, has_gpu=True), (_POD,))
    assert _names(by_price([gpu, _option("a")], prices)) == ["a"]
    assert by_price([_option("unpriced")], prices) == []


def test_a_chain_stops_when_one_option_is_left() -> None:
    options = [_option("a", 2, pods=1), _option("b", 2, pods=3), _option("c", 4, pods=9)]

    assert _names(in_chain(options, [least_nodes, most_pods])) == ["b"]
    assert _names(in_chain(options, [most_pods, least_nodes])) == ["c"]


def test_the_random_choice_is_one_of_the_options_and_depends_on_the_seed_alone() -> None:
    options = [_option(name) for name in "abcdefgh"]

    assert at_random(options, 3) == at_random(options, 3)
    assert len({at_random(options, seed)[0].group for seed in range(40)}) > 1
    assert at_random([], 1) == []
