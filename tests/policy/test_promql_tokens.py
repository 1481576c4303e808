"""The words of expressions: names with their labels, numbers, operators."""

from __future__ import annotations

import pytest

from shoal.policy.promql_tokens import Word, bracket_fault, promql_words, texts


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("a_b/c > 0.95", ["a_b", "/", "c", ">", "0.95"]),
        ("rate(a[5m])==0", ["rate", "(", "a", "[", "5", "m", "]", ")", "==", "0"]),
        ('x{pod=~"a}b"} + y', ["x", "+", "y"]),
        ("vllm:num >= 1", ["vllm:num", ">=", "1"]),
        ('"open', ["open"]),
        ("{__name__='x'}", []),
        ("", []),
        ("a # all of it's pods\n+ b", ["a", "+", "b"]),
        (r'x{pod="a\"}b"} + y', ["x", "+", "y"]),
        (r"x{pod=`a\`} + y", ["x", "+", "y"]),
        ('x{pod="}"} + y', ["x", "+", "y"]),
    ],
)
def test_an_expression_is_split_into_words(expression: str, words: list[str]) -> None:
    assert [word.text for word in promql_words(expression)] == words


def test_label_matchers_belong_to_the_name_before_them() -> None:
    assert promql_words('x{xid="48", pod=~"a"}[5m]')[0] == Word("x", ("xid", "=", "48", ",", "pod", "=~", "a"))


def test_the_texts_end_with_the_expression() -> None:
    assert texts(promql_words("a / b"), 1, 5) == ("/", "b")


@pytest.mark.parametrize(
    ("expression", "is_wrong"),
    [
        ('sum(rate(http_requests_total{path="("}[2m]))', False),
        ("sum( # it's all pods (\n rate(x[2m]))", False),
        (r'sum(x{path=~"a\"(b"})', False),
        ("sum(x", True),
        ("sum(x]", True),
        ("sum(x # )", True),
    ],
)
def test_only_brackets_outside_of_texts_and_comments_are_closed(expression: str, is_wrong: bool) -> None:
    assert (bracket_fault(expression) is not None) is is_wrong
