"""Which nodes a pod may use, and which it would rather use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.node_affinity import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    node_rule,
)
from shoal.api.requirement import Operator, Requirement
from shoal.units.errors import UserError, Where

NAME = "n1"
LABELS = {"zone": "a", "gpus": "8", "product": "A100", "negative": "-4", "word": "8x"}


def term(key: str, operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm((Requirement(key, operator, values),))


def field(operator: Operator, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=(Requirement("metadata.name", operator, values),))


def required(*terms: NodeSelectorTerm) -> NodeAffinity:
    return NodeAffinity(NodeSelector(terms))


MATCHES = {
    "In with the node's value": (term("zone", "In", "a", "b"), True),
    "In with others": (term("zone", "In", "b"), False),
    "In for an absent label": (term("rack", "In", "r1"), False),
    "NotIn with others": (term("zone", "NotIn", "b"), True),
    "NotIn holds for an absent label": (term("rack", "NotIn", "r1"), True),
    "Exists": (term("zone", "Exists"), True),
    "Exists for an absent label": (term("rack", "Exists"), False),
    "DoesNotExist": (term("rack", "DoesNotExist"), True),
    "DoesNotExist for a present label": (term("zone", "DoesNotExist"), False),
    "Gt is strict": (term("gpus", "Gt", "8"), False),
    "Gt compares numbers, not text": (term("gpus", "Gt", "10"), False),
    "Gt": (term("gpus", "Gt", "7"), True),
    "Lt": (term("gpus", "Lt", "10"), True),
    "Lt below zero": (term("negative", "Lt", "-3"), True),
    "Gt for an absent label": (term("rack", "Gt", "0"), False),
    "Lt for an absent label": (term("rack", "Lt", "0"), False),
    "Gt for a label that is no number": (term("word", "Gt", "0"), False),
    "the name as a field": (field("In", "n1"), True),
    "another name as a field": (field("In", "n2"), False),
    "not another name": (field("NotIn", "n2"), True),
    "a term without conditions matches no node": (NodeSelectorTerm(), False),
}


@pytest.mark.parametrize(("one", "want"), MATCHES.values(), ids=MATCHES)
def test_a_term_matches(one: NodeSelectorTerm, want: bool) -> None:
    assert node_rule({}, required(one)).matches(NAME, LABELS) is want


def test_conditions_inside_a_term_must_all_hold_labels_and_fields() -> None:
    both = NodeSelectorTerm(
        (Requirement("zone", "In", ("a",)),),
        (Requirement("metadata.name", "In", ("n2",)),),
    )
    assert not node_rule({}, required(both)).matches("n1", LABELS)
    assert node_rule({}, required(both)).matches("n2", LABELS)


def test_terms_are_alternatives() -> None:
    rule = node_rule({}, required(term("zone", "In", "b"), term("gpus", "In", "8")))
    assert rule.matches(NAME, LABELS)


def test_the_node_selector_must_hold_besides_the_affinity() -> None:
    affinity = required(term("zone", "In", "a"))
    assert node_rule({"product": "A100"}, affinity).matches(NAME, LABELS)
    assert not node_rule({"product": "H100"}, affinity).matches(NAME, LABELS)


def test_no_demand_is_met_anywhere() -> None:
    rule = node_rule({}, NodeAffinity())
    assert rule.is_anywhere()
    assert rule.matches("any", {})


def test_no_terms_at_all_match_no_node() -> None:
    assert not node_rule({}, required()).matches(NAME, LABELS)


def test_equal_demands_are_equal_keys() -> None:
    one, other = node_rule({"a": "1", "b": "2"}, None), node_rule({"b": "2", "a": "1"}, None)
    assert one == other
    assert hash(one) == hash(other)


REFUSED = {
    "no terms": (required(), "a.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: must have"),
    "Gt with two values": (required(term("a", "Gt", "1", "2")), "exactly one whole number"),
    "Gt with a word": (required(term("a", "Gt", "many")), "exactly one whole number"),
    "Gt with more than 64 bits": (required(term("a", "Gt", "9" * 19)), "exactly one whole number"),
    "In without values": (required(term("a", "In")), "nodeSelectorTerms[0].matchExpressions[0].values"),
    "another field than the name": (
        required(NodeSelectorTerm(match_fields=(Requirement("spec.x", "In", ("a",)),))),
        "only metadata.name can be matched",
    ),
    "a field with Exists": (required(field("Exists")), "In or NotIn only"),
    "a field with two values": (required(field("In", "a", "b")), "exactly one value"),
    "a bad preference": (
        NodeAffinity(None, (PreferredSchedulingTerm(1, term("a b", "Exists")),)),
        "preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key",
    ),
}


@pytest.mark.parametrize(("affinity", "complaint"), REFUSED.values(), ids=REFUSED)
def test_impossible_demands_are_refused(affinity: NodeAffinity, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        affinity.check(Where(path="a"))
    assert complaint in str(refusal.value)


@given(
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=2),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from("xyz")),
)
def test_a_node_selector_means_those_labels_and_no_more(wanted: dict[str, str], have: dict[str, str]) -> None:
    assert node_rule(wanted, None).matches("n", have) is (wanted.items() <= have.items())
