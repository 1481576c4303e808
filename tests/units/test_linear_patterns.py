"""The verdicts and words in these tables are those of Go 1.26's `regexp`."""

from __future__ import annotations

import pytest

from shoal.units.linear_patterns import PatternError, compile_linear

TAKEN = {
    "^(?i)x": (["X"], ["aX"]),
    "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$": (["Pod-1"], ["-a", "a-"]),
    "a(?i)b": (["aB"], ["AB"]),
    "(a(?i)b)c": (["aBc"], ["aBC"]),
    "(?i-s:a)b": (["Ab"], ["AB"]),
    r"^\pL$": (["é", "日"], ["1"]),
    r"^\PL$": (["1"], ["é"]),
    r"^\p{Greek}$": (["λ"], ["a"]),
    r"^\P{^Greek}$": (["λ"], ["a"]),
    r"^[\p{Greek}\d]+$": (["λ1"], ["a"]),
    "(?<n>a)": (["a"], ["b"]),
    "(?P<n>a)": (["a"], ["b"]),
    "^(?U)a+$": (["aa"], ["b"]),
    r"\x{1F600}": (["😀"], ["x"]),
    r"^\x41\07?$": (["A"], ["a"]),
    "^a{1000}$": (["a" * 1000], ["a" * 999]),
    "^(?:a{500}){2}$": (["a" * 1000], ["a" * 999]),
    "x{": (["x{"], ["x"]),
    "x{,2}": (["x{,2}"], ["xx"]),
    r"a\z": (["a"], ["a\n"]),
    r"\Aa$": (["a"], ["a\n", "ba"]),
    "(?m)a$": (["a\nb"], ["ab"]),
    "^.$": (["é", "\ud800"], ["\n", "ab"]),
    "(?s)^.$": (["\n"], ["ab"]),
    r"^\d$": (["1"], ["٣"]),
    r"^\w$": (["_"], ["é"]),
    r"^\s$": (["\n"], ["\v", "\u00a0"]),
    r"^[[:^alpha:]]$": (["1"], ["a"]),
    "^[[:word:]]$": (["_"], ["-"]),
    r"\Qa.b\E+": (["a.b"], ["aab"]),
    r"\Qa.b": (["a.b"], ["aab"]),
    r"\Q\C\E": ([r"\C"], ["C"]),
    r"\\C": ([r"\C"], ["C"]),
    "(?i)^k$": (["K", "\u212a"], ["x"]),
    "(?i)^ß$": (["ẞ"], ["ss"]),
    "[a&&b]": (["&"], ["c"]),
    "[]a]": (["]"], ["b"]),
    "^(a*)*$": (["aaa", ""], ["b"]),
    "": (["", "a"], []),
}
REFUSED = {
    "a{1001}": "invalid repeat count: `{1001}`",
    "((x{30}){30}){2}": "invalid repeat count: `{2}`",
    "x{2,1}": "invalid repeat count: `{2,1}`",
    r"\Z": r"invalid escape sequence: `\Z`",
    r"\u0041": r"invalid escape sequence: `\u`",
    r"(a)\1": r"invalid escape sequence: `\1`",
    r"\8": r"invalid escape sequence: `\8`",
    r"\C": r"invalid escape sequence: `\C`",
    r"\Qa\Eb\C": r"invalid escape sequence: `\C`",
    r"\x{110000}": r"invalid escape sequence: `\x{110000`",
    "(?=a)": "invalid or unsupported Perl syntax: `(?=`",
    "(?!a)": "invalid or unsupported Perl syntax: `(?!`",
    "(?<=a)b": "invalid named capture: `(?<=a)b`",
    "(?<!a>)b": "invalid named capture: `(?<!a>`",
    "(?P=n)": "invalid or unsupported Perl syntax: `(?P`",
    "(?P<a-b>x)": "invalid named capture: `(?P<a-b>`",
    "(?P<é>x)": "invalid named capture: `(?P<é>`",
    "(?>a)": "invalid or unsupported Perl syntax: `(?>`",
    "(?x)a": "invalid or unsupported Perl syntax: `(?x`",
    "(?#c)": "invalid or unsupported Perl syntax: `(?#`",
    "a**": "invalid nested repetition operator: `**`",
    "a++": "invalid nested repetition operator: `++`",
    "*": "missing argument to repetition operator: `*`",
    "(a": "missing closing ): `(a`",
    "a)": "unexpected ): `a)`",
    "[a": "missing closing ]: `[a`",
    "[b-a]": "invalid character class range: `b-a`",
    "[[:foo:]]": "invalid character class range: `[:foo:]`",
    r"\p{Foo}": r"invalid character class range: `\p{Foo}`",
    "a\\": "trailing backslash at end of expression: ``",
    "a" * 20_000: "expression too large: ``",
}


@pytest.mark.parametrize("pattern", TAKEN)
def test_patterns_of_go_find_what_they_find_there(pattern: str) -> None:
    found, others = TAKEN[pattern]
    compiled = compile_linear(pattern)
    assert [compiled.occurs(text) for text in found] == [True] * len(found)
    assert [compiled.occurs(text) for text in others] == [False] * len(others)


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: pattern[:20])
def test_other_patterns_are_refused_in_the_words_of_go(pattern: str) -> None:
    with pytest.raises(PatternError) as refused:
        compile_linear(pattern)
    assert str(refused.value) == f"error parsing regexp: {REFUSED[pattern]}"


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("é?", "éa日", ["é", "", ""]),
        (r"\d+", "1, 22, 333", ["1", "22", "333"]),
        ("", "日本", ["", "", ""]),
    ],
)
def test_all_that_a_pattern_finds_is_given_from_left_to_right(pattern: str, text: str, found: list[str]) -> None:
    assert list(compile_linear(pattern).find_all(text)) == found
    assert list(compile_linear(pattern).find_all(text, 1)) == found[:1]


def test_half_a_surrogate_pair_in_a_pattern_is_refused() -> None:
    with pytest.raises(PatternError, match="invalid UTF-8"):
        compile_linear("\ud800")
