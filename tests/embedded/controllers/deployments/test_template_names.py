"""The names that templates give to replica sets and revisions, and when two templates are the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.pod_life import template
from shoal.client.owned_pods.template_hash import template_hash
from shoal.embedded.controllers.deployments.revision_annotations import DESIRED, HISTORY, REVISION, of_new_set
from shoal.embedded.controllers.deployments.templates import HASH, same_template
from shoal.units.int_or_percent import amount_of

VALUES = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=5)


@settings(max_examples=examples(40), deadline=None)
@given(VALUES, st.none() | st.integers(0, 9))
def test_a_hash_is_a_short_word_that_order_does_not_change(value: dict[str, Any], collisions: int | None) -> None:
    hashed = template_hash(value, collisions)
    assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{8,10}", hashed)
    assert template_hash(dict(reversed(value.items())), collisions) == hashed


def test_other_templates_and_collisions_have_other_hashes() -> None:
    hashes = [template_hash(template(image=f"web:{number}"), None) for number in range(200)]
    hashes += [template_hash(template(), collisions) for collisions in range(200)]
    assert len(set(hashes)) == 400


def test_templates_are_the_same_but_for_the_hash() -> None:
    one, other = template(), template()
    other["metadata"]["labels"][HASH] = "abc"
    other["metadata"]["creationTimestamp"] = None
    assert same_template(one, other)
    assert not same_template(one, template(image="web:2"))
    assert not same_template(one, {**one, "metadata": {**one["metadata"], "annotations": {"restartedAt": "now"}}})


def test_a_set_that_is_gone_back_to_remembers_its_revisions() -> None:
    deployment = {REVISION: "4", "team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    before = {REVISION: "1", HISTORY: "0", DESIRED: "3"}
    expected = {REVISION: "5", HISTORY: "0,1", DESIRED: "3", "team": "a"}
    assert of_new_set(deployment, before, 5) == expected
    assert of_new_set(deployment, expected, 5) == expected


def test_a_long_past_is_cut_at_its_beginning() -> None:
    past = ",".join(str(number) for number in range(10_000, 10_400))
    history = of_new_set({}, {REVISION: "10400", HISTORY: past}, 10_401)[HISTORY]
    assert len(history) <= 2000
    assert history.endswith(",10399,10400")


@pytest.mark.parametrize(
    ("written", "whole", "up", "expected"),
    [(3, 10, True, 3), ("25%", 10, True, 3), ("25%", 10, False, 2), ("100%", 7, False, 7), (None, 7, True, 0)],
)
def test_shares_are_rounded_as_asked(written: int | str | None, whole: int, up: bool, expected: int) -> None:
    assert amount_of(written, whole, up=up) == expected
