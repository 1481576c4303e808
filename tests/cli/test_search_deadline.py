"""The time that a search is given."""

from __future__ import annotations

from shoal.cli.search_deadline import SearchDeadline


def test_time_counts_from_the_first_question() -> None:
    moments = iter([100.0, 101.0, 101.9, 102.0, 500.0])
    patience = SearchDeadline(2.0, lambda: next(moments))
    assert [patience() for _ in range(5)] == [True, True, True, False, False]
