"""The pure parts: index texts, waits after failures, rules."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from build.job_hands import job_pod_like
from shoal.embedded.controllers.jobs.backoff import NO_FAILURES, Failures, index_failures
from shoal.embedded.controllers.jobs.indexes import first_free, read_indexes, write_indexes
from shoal.embedded.controllers.jobs.job import ExitCodes, FailurePolicy, FailureRule, SuccessPolicy, SuccessRule
from shoal.embedded.controllers.jobs.pods import removal_rank
from shoal.embedded.controllers.jobs.policies import decide_failure, met_rule


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        pytest.param("", set(), id="none"),
        pytest.param("3", {3}, id="one"),
        pytest.param("3,4", {3, 4}, id="two neighbours stay two"),
        pytest.param("1,3-5,7", {1, 3, 4, 5, 7}, id="three become a span"),
    ],
)
def test_indexes_are_written_compactly(text: str, indexes: set[int]) -> None:
    assert write_indexes(indexes) == text
    assert read_indexes(text, 100) == indexes


@given(st.sets(st.integers(0, 60)), st.integers(0, 70))
def test_what_is_written_is_read_again_as_far_as_it_is_asked_for(indexes: set[int], completions: int) -> None:
    assert read_indexes(write_indexes(indexes), completions) == {one for one in indexes if one < completions}


@given(st.sets(st.integers(0, 30)), st.integers(0, 10), st.integers(0, 30))
def test_the_lowest_free_indexes_come_first(taken: set[int], count: int, completions: int) -> None:
    assert first_free(count, completions, taken) == [one for one in range(completions) if one not in taken][:count]


@pytest.mark.parametrize("text", ["x", "1-x", "-", "1,,2x", "1," + "9" * 5000])
def test_what_cannot_be_read_is_passed_over(text: str) -> None:
    assert read_indexes(text, 10) <= {1}


@pytest.mark.parametrize("text", ["0-1999999", "0-599999,600000-1199999"])
def test_a_few_words_do_not_ask_for_more_than_fits(text: str) -> None:
    assert len(read_indexes(text, 10**9)) == 1_000_000


@pytest.mark.parametrize(("count", "wait_s"), [(0, 0), (1, 10), (2, 20), (3, 40), (6, 320), (7, 600), (1000, 600)])
def test_the_wait_doubles_up_to_ten_minutes(count: int, wait_s: float) -> None:
    assert Failures(count, 50.0).wait_s(50.0) == wait_s
    assert Failures(count, 50.0).wait_s(50.0 + wait_s + 1) == 0


def test_a_success_forgives_the_failures_before_it() -> None:
    early, middle, late = (job_pod_like(ended_s=second) for second in (1.0, 2.0, 3.0))
    assert NO_FAILURES.after([], [early, late]) == Failures(2, 3.0)
    assert Failures(4, 1.0).after([middle], [early, late]) == Failures(1, 3.0)
    assert Failures(4, 1.0).after([late], [early, middle]) == NO_FAILURES
    assert Failures(4, 1.0).after([], []) == Failures(4, 1.0)


def test_an_index_waits_by_all_its_failures_ignored_ones_too() -> None:
    assert index_failures(job_pod_like(index_failures=1, index_ignored=2, ended_s=9.0)) == Failures(4, 9.0)


@pytest.mark.parametrize(
    ("codes", "exits", "fits"),
    [
        pytest.param(ExitCodes("In", (1, 2)), (("main", 2),), True, id="a code of the list"),
        pytest.param(ExitCodes("In", (1, 2)), (("main", 3),), False, id="another code"),
        pytest.param(ExitCodes("NotIn", (1, 2)), (("main", 3),), True, id="a code outside the list"),
        pytest.param(ExitCodes("NotIn", (1, 2)), (("main", 0),), False, id="success is never a failure"),
        pytest.param(ExitCodes("In", (1,), "side"), (("main", 1),), False, id="another container"),
        pytest.param(ExitCodes("In", (1,), "side"), (("main", 0), ("side", 1)), True, id="that container"),
    ],
)
def test_exit_codes_fit_a_rule(codes: ExitCodes, exits: tuple[tuple[str, int], ...], fits: bool) -> None:
    policy = FailurePolicy((FailureRule("Ignore", codes), FailureRule("FailIndex", ExitCodes("NotIn", (99,)))))
    assert (decide_failure(policy, job_pod_like(exits=exits)).action == "Ignore") is fits


def test_rules_of_success_are_met_by_their_own_measure() -> None:
    rules = (SuccessRule("0,5", 3), SuccessRule("0-3", 2), SuccessRule(None, 4))
    policy = SuccessPolicy(rules)
    assert met_rule(policy, 6, {0, 4}) == ""
    assert met_rule(policy, 6, {1, 3}) == "Matched rules at index 1"
    assert met_rule(policy, 6, {0, 5}) == "Matched rules at index 0"
    assert met_rule(SuccessPolicy(rules[2:]), 6, {1, 2, 4, 5}) == "Matched rules at index 0"
    assert met_rule(None, 6, {1}) == ""


def test_of_too_many_pods_those_go_that_have_got_least_far() -> None:
    ready = job_pod_like(phase="Running", node="n", ready_since=5.0)
    ladder = [
        job_pod_like(phase="Pending"),
        job_pod_like(phase="Pending", node="n"),
        job_pod_like(phase="Running", node="n"),
        msgspec.structs.replace(ready, ready_since=9.0),
        ready,
        msgspec.structs.replace(ready, created_s=-1.0),
    ]
    ranks = [removal_rank(pod) for pod in ladder]
    assert ranks == sorted(set(ranks))
