"""Which of two pods goes first when there is one too many."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.pod_sights import NOW_S, sight
from shoal.client.owned_pods.pod_view import COST, PodView
from shoal.embedded.controllers.replicas.ranking import deletion_cost, first_to_go

PAIRS = {
    "one without a node before one on a node": (sight("a", node=""), sight("b")),
    "a pending one before a running one": (sight("a", phase="Pending"), sight("b", ready_s=None)),
    "an unknown one before a running one": (sight("a", phase="Unknown"), sight("b")),
    "an unready one before a ready one": (sight("a", ready_s=None, age_s=9999), sight("b", age_s=1)),
    "a cheap one before a dear one": (sight("a", annotations={COST: "-5"}), sight("b", ready_s=1)),
    "readiness counts more than cost": (sight("a", ready_s=None, annotations={COST: "99"}), sight("b")),
    "one of a crowd before a lonely one": (sight("a", node="crowded"), sight("b", ready_s=1)),
    "one that is ready for seconds before one for hours": (sight("a", ready_s=5), sight("b", ready_s=9000)),
    "one that restarted often before one that did not": (sight("a", restarts=9), sight("b", age_s=1)),
    "a young one before an old one": (sight("a", age_s=5), sight("b", age_s=9000)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_which_of_two_goes_first(name: str) -> None:
    first, second = PAIRS[name]
    node_counts = Counter({"crowded": 3, "n1": 1})
    assert first_to_go([second, first], node_counts, NOW_S) == [first, second]
    assert first_to_go([first, second], node_counts, NOW_S) == [first, second]


def test_among_pods_of_about_one_age_the_uid_decides() -> None:
    older, younger = sight("a", ready_s=101), sight("b", ready_s=100)
    assert first_to_go([younger, older], {}, NOW_S) == [older, younger]


@pytest.mark.parametrize(("written", "cost"), [("7", 7), ("-7", -7), ("", 0), ("much", 0), ("1.5", 0), (str(2**31), 0)])
def test_a_cost_that_is_no_number_is_none(written: str, cost: int) -> None:
    assert deletion_cost(sight("a", annotations={COST: written})) == cost


PODS = st.builds(
    sight,
    st.uuids().map(str),
    phase=st.sampled_from(["Pending", "Running"]),
    ready_s=st.sampled_from([None, 1, 100, 5000]),
    age_s=st.sampled_from([1, 100, 5000]),
    node=st.sampled_from(["", "n1", "n2"]),
    restarts=st.integers(0, 2),
)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(PODS, min_size=3, max_size=4, unique_by=lambda pod: pod.name))
def test_the_order_does_not_depend_on_how_pods_were_listed(pods: list[PodView]) -> None:
    node_counts = Counter(pod.spec.node_name for pod in pods)
    # Kubernetes' comparison is no total order where ages, ready times and uids cross; the states always are one.
    orders = [[_state(pod) for pod in first_to_go(one, node_counts, NOW_S)] for one in permutations(pods)]
    assert all(one == sorted(one) for one in orders)


def _state(pod: PodView) -> tuple[bool, bool, bool]:
    return (pod.spec.node_name != "", pod.status.phase == "Running", pod.is_ready())


def test_other_notes_of_a_pod_are_not_kept() -> None:
    kept = msgspec.to_builtins(sight("a", annotations={COST: "5", "manifest": "very long"}))
    assert kept["metadata"]["annotations"] == {COST: "5"}
