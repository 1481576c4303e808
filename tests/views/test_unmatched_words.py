"""The sentence about a condition that no node meets."""

from __future__ import annotations

from shoal.engine.unmatched import Unmatched
from shoal.views.remedies import unmatched_words


def test_without_a_similar_value_the_values_of_the_nodes_are_named() -> None:
    condition = Unmatched("zone", ("mars",), has_key=True, present=("east-1", "east-2"))
    assert unmatched_words([condition]) == "No node has zone=mars; nodes have east-1, east-2."
    many = tuple(f"z{at}" for at in range(6))
    condition = Unmatched("zone", ("mars",), has_key=True, present=many)
    assert unmatched_words([condition]) == "No node has zone=mars; nodes have z0, z1, z2, z3 and 2 more."


def test_a_similar_value_is_named_alone() -> None:
    condition = Unmatched("zone", ("eats-1",), has_key=True, near=("east-1",), present=("east-1", "east-2"))
    assert unmatched_words([condition]) == "No node has zone=eats-1; did you mean east-1?"


def test_a_comparison_is_written_as_one() -> None:
    condition = Unmatched("memory", ("100000",), has_key=True, present=("24576", "81559"), operator="Gt")
    assert unmatched_words([condition]) == "No node has memory > 100000; nodes have 24576, 81559."
