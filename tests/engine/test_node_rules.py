"""Selectors, affinity, taints, cordons, models and names: which nodes a pod may use at all.

Where `shoal.api` has a rule that judges one node at a time, it is the oracle for the columns.
"""

from __future__ import annotations

import itertools

import pytest

from build.nodes import NodeBuilder, node
from build.pods import AskBuilder, ask, named, term, where
from build.scenario import Scenario
from shoal.api.requirement import Requirement
from shoal.api.taints import Taint, Toleration, untolerated

ZONES = [
    node("bare"),
    node("a1").label("zone", "a").label("size", "1"),
    node("a9").label("zone", "a").label("size", "9").label("fast"),
    node("b").label("zone", "b").label("size", "10"),
    node("odd").label("zone", "c").label("size", "big"),
    node("negative").label("size", "-3"),
]

CONDITIONS = {
    "In names one value": where("zone", "In", "a"),
    "In names several values": where("zone", "In", "a", "c"),
    "In names a value no node ever had": where("zone", "In", "z"),
    "In asks for a key no node ever had": where("rack", "In", "r1"),
    "In asks for the empty value": where("fast", "In", ""),
    "NotIn holds where the key is absent": where("zone", "NotIn", "a"),
    "NotIn a value no node ever had holds everywhere": where("zone", "NotIn", "z"),
    "NotIn on a key no node ever had holds everywhere": where("rack", "NotIn", "r1"),
    "Exists": where("zone", "Exists"),
    "Exists on a key no node ever had": where("rack", "Exists"),
    "Exists with an empty value": where("fast", "Exists"),
    "DoesNotExist": where("zone", "DoesNotExist"),
    "DoesNotExist on a key no node ever had": where("rack", "DoesNotExist"),
    "Gt compares numbers, not text": where("size", "Gt", "9"),
    "Gt is strict": where("size", "Gt", "10"),
    "Lt knows negative numbers": where("size", "Lt", "0"),
    "Lt skips what is no number": where("size", "Lt", "1000000"),
    "Gt on a key no node ever had": where("rack", "Gt", "1"),
}


def allowed(nodes: list[NodeBuilder], wanted: AskBuilder) -> set[str]:
    """What the one-node-at-a-time rule says."""
    return {there.name for there in nodes if wanted.rule.matches(there.name, there.labels)}


@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=CONDITIONS)
def test_a_condition_over_columns_agrees_with_the_same_condition_on_each_node(condition: Requirement) -> None:
    world = Scenario(*ZONES)
    selecting = ask().select(condition.key, condition.operator, *condition.values)
    assert world.fitting(selecting) == allowed(ZONES, selecting)
    as_term = ask().either(term(condition))
    assert world.fitting(as_term) == allowed(ZONES, as_term) == world.fitting(selecting)


PAIRS = list(itertools.combinations(CONDITIONS.values(), 2))


def test_conditions_of_one_term_must_all_hold_and_terms_are_alternatives() -> None:
    world = Scenario(*ZONES, most_keys=64 * 8)
    for first, second in PAIRS:
        both = ask().either(term(first, second))
        assert world.fitting(both) == allowed(ZONES, both)
        either = ask().either(term(first), term(second))
        assert world.fitting(either) == allowed(ZONES, either)
        selector_and_term = ask().select(first.key, first.operator, *first.values).either(term(second))
        assert world.fitting(selector_and_term) == allowed(ZONES, selector_and_term)


AFFINITY = {
    "an empty list of terms matches no node": ask().either(),
    "an empty term matches no node": ask().either(term()),
    "an empty term does not spoil a good one": ask().either(term(), term(where("zone", "In", "b"))),
    "a term may name the node": ask().either(term(names=named("In", "b"))),
    "a term may exclude a node by name": ask().either(term(names=named("NotIn", "b"))),
    "a name nobody has matches nothing": ask().either(term(names=named("In", "ghost"))),
    "excluding a name nobody has matches everything": ask().either(term(names=named("NotIn", "ghost"))),
    "name and labels of one term must both hold": ask().either(term(where("zone", "In", "a"), names=named("In", "a9"))),
}


@pytest.mark.parametrize("wanted", AFFINITY.values(), ids=AFFINITY)
def test_required_affinity(wanted: AskBuilder) -> None:
    assert Scenario(*ZONES).fitting(wanted) == allowed(ZONES, wanted)


def test_a_relabelled_node_is_judged_again() -> None:
    world = Scenario(node("n").label("zone", "a"))
    in_a, in_b, outside = (
        ask().select("zone", "In", "a"),
        ask().select("zone", "In", "b"),
        ask().select("zone", "DoesNotExist"),
    )
    assert [world.fitting(x) for x in (in_a, in_b, outside)] == [{"n"}, set(), set()]
    world.see(node("n").label("zone", "b"))
    assert [world.fitting(x) for x in (in_a, in_b, outside)] == [set(), {"n"}, set()]
    world.see(node("n"))
    assert [world.fitting(x) for x in (in_a, in_b, outside)] == [set(), set(), {"n"}]


def test_a_name_is_matched_again_when_a_node_of_that_name_comes_back_in_another_row() -> None:
    world = Scenario(node("n"), node("m"))
    by_name, by_term = ask().on("n"), ask().either(term(names=named("In", "n")))
    assert world.fitting(by_name) == world.fitting(by_term) == {"n"}
    world.lose("n").lose("m").see(node("m"), node("n"))
    assert world.fitting(by_name) == world.fitting(by_term) == {"n"}


def test_a_pod_that_names_its_node_goes_there_or_nowhere() -> None:
    world = Scenario(node("n"), node("full").pods(0))
    assert world.fitting(ask().on("n")) == {"n"}
    assert world.fitting(ask().on("full")) == set()
    assert world.fitting(ask().on("ghost")) == set()


TAINTS = [
    Taint("gpu", "NoSchedule"),
    Taint("gpu", "NoSchedule", "a100"),
    Taint("gpu", "NoExecute"),
    Taint("gpu", "PreferNoSchedule"),
    Taint("dedicated", "NoSchedule", "team-a"),
    Taint("priority", "NoSchedule", "60"),
]
TOLERATIONS = {
    "nothing is tolerated": (),
    "a key is tolerated whatever its value": (Toleration("gpu", "Exists"),),
    "a key is tolerated with the empty value only": (Toleration("gpu", "Equal"),),
    "a value is tolerated": (Toleration("gpu", "Equal", "a100"),),
    "one effect is tolerated": (Toleration("gpu", "Exists", effect="NoExecute"),),
    "everything is tolerated": (Toleration(operator="Exists"),),
    "everything of one effect is tolerated": (Toleration(operator="Exists", effect="NoSchedule"),),
    "numbers above a bound are tolerated": (Toleration("priority", "Gt", "50"),),
    "numbers below a bound are tolerated": (Toleration("priority", "Lt", "50"),),
    "two keys are tolerated": (Toleration("gpu", "Exists"), Toleration("dedicated", "Equal", "team-a")),
}


@pytest.mark.parametrize("tolerations", TOLERATIONS.values(), ids=TOLERATIONS)
def test_taints_keep_out_whom_the_one_node_rule_keeps_out(tolerations: tuple[Toleration, ...]) -> None:
    world = Scenario()
    expected = set()
    for size in range(3):
        for taints in itertools.combinations(TAINTS, size):
            there = node(" ".join(str(taint) for taint in taints))
            for taint in taints:
                there = there.taint(taint.key, taint.effect, taint.value)
            world.see(there)
            if untolerated(taints, tolerations) is None:
                expected.add(there.name)
    assert world.fitting(AskBuilder(tolerations=tolerations)) == expected


def test_a_soft_taint_keeps_nobody_out() -> None:
    assert Scenario(node("n").taint("slow", "PreferNoSchedule")).fitting(ask()) == {"n"}


def test_a_taint_set_first_seen_after_a_shape_exists_is_judged() -> None:
    world = Scenario(node("n"))
    assert world.fitting(ask()) == {"n"}
    world.see(node("n").taint("gpu"))
    assert world.fitting(ask()) == set()
    world.see(node("n"))
    assert world.fitting(ask()) == {"n"}


def test_a_cordoned_node_takes_nobody_new_and_keeps_whom_it_has() -> None:
    world = Scenario(node("n")).bind("old", ask(), "n").see(node("n").cordoned())
    assert world.fitting(ask()) == set()
    assert world.placed() == {"old": "n"}
    world.see(node("n"))
    assert world.fitting(ask()) == {"n"}


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (ask().tolerate("node.kubernetes.io/unschedulable"), True),
        (ask().tolerate(), True),
        (ask().tolerate("node.kubernetes.io/unschedulable", effect="NoExecute"), False),
        (ask().tolerate("node.kubernetes.io/not-ready"), False),
    ],
    ids=["who tolerates the cordon", "who tolerates everything", "who tolerates another effect", "who tolerates else"],
)
def test_a_cordon_counts_as_its_taint(wanted: AskBuilder, fits: bool) -> None:
    assert bool(Scenario(node("n").cordoned()).fitting(wanted)) is fits


MODELS = [node("a").gpus(2).model("A100"), node("h").gpus(2).model("H100"), node("none"), node("unnamed").gpus(2)]


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        (ask().gpus(1), {"a", "h", "unnamed"}),
        (ask().gpus(1).model("A100"), {"a"}),
        (ask().gpus(1).model("A100", "H100"), {"a", "h"}),
        (ask().share(300).model("H100"), {"h"}),
        (ask().gpus(1).model("B200"), set()),
        (ask().gpus(1).model("B200", "H100"), {"h"}),
        (ask().gpus(3).model("H100"), set()),
    ],
    ids=[
        "any model will do",
        "one model",
        "either of two",
        "a share of one model",
        "a model the fleet lacks matches nothing",
        "a model the fleet lacks does no harm beside one it has",
        "the model is there but not enough of it",
    ],
)
def test_gpu_models(wanted: AskBuilder, fits: set[str]) -> None:
    assert Scenario(*MODELS).fitting(wanted) == fits


def test_the_model_label_that_a_node_carries_itself_counts_as_its_model() -> None:
    world = Scenario(node("n").gpus(1).label("nvidia.com/gpu.product", "A100"))
    assert world.fitting(ask().gpus(1).model("A100")) == {"n"}


def test_a_node_that_changes_its_model_is_judged_again() -> None:
    world = Scenario(node("n").gpus(1).model("A100"))
    assert world.fitting(ask().gpus(1).model("H100")) == set()
    world.see(node("n").gpus(1).model("H100"))
    assert world.fitting(ask().gpus(1).model("H100")) == {"n"}
