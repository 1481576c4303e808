"""What is kept of answers about texts."""

from __future__ import annotations

from shoal.units.bounded_cache import LONGEST, kept


def test_a_text_is_looked_at_once_while_few_others_come() -> None:
    seen: list[str] = []

    @kept(most=2)
    def length(text: str) -> int:
        seen.append(text)
        return len(text)

    assert [length(text) for text in ("a", "bc", "a", "bc", "d", "a")] == [1, 2, 1, 2, 1, 1]
    assert seen == ["a", "bc", "d", "a"]


def test_nothing_is_kept_of_long_texts() -> None:
    seen: list[int] = []

    @kept(most=2)
    def length(text: str) -> int:
        seen.append(len(text))
        return len(text)

    for text in ("x" * LONGEST, "x" * (LONGEST + 1)) * 2:
        assert length(text) == len(text)
    assert seen == [LONGEST, LONGEST + 1, LONGEST + 1]
