"""Expressions: what they come to, and in which words they fail."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.admission_expressions import BASE, Expression
from shoal.embedded.apiserver.cel import CelFault, compile_expression
from shoal.embedded.apiserver.cel.functions.authorization import authorizer
from shoal.embedded.apiserver.cel.lazy import Lazy
from shoal.embedded.apiserver.cel.plain import to_json
from shoal.embedded.apiserver.cel.program import MUTATING
from shoal.embedded.apiserver.request_info import RequestInfo

ITSELF: dict[str, Any] = {
    "a": 1,
    "d": 1.5,
    "s": "abc",
    "none": None,
    "xs": [1, 2, 3],
    "m": {"k": "v"},
}


def value_of(text: str, **bindings: Any) -> Any:
    given_values = bindings or {"self": ITSELF}
    program = compile_expression(text, dict.fromkeys(given_values, "dyn"), "any", MUTATING)
    value = program.evaluate(given_values)
    return getattr(value, "held", value)


def refusal(text: str) -> str:
    with pytest.raises(CelFault) as caught:
        compile_expression(text, {"self": "dyn"}, "any")
    return str(caught.value)


TRUE = """
    self.xs.all(x, x > 0) && self.xs.exists(x, x == 2) && self.xs.exists_one(x, x == 2)
    self.xs.map(x, x * 2) == [2, 4, 6]
    self.xs.map(x, x > 1, x * 10) == [20, 30]
    self.xs.filter(x, x > 1).size() == 2
    self.m.all(k, v, v == 'v') && self.xs.exists(i, v, i == 2 && v == 3)
    self.xs.transformList(i, v, v * i) == [0, 2, 6]
    self.m.transformMap(k, v, v + k) == {'k': 'vk'}
    self.m.transformMapEntry(k, v, {v: k}) == {'v': 'k'}
    has(self.a) && !has(self.b)
    self.?b.?c.orValue('z') == 'z' && self.?a.hasValue()
    [?self.?a, ?self.?b] == [1] && {?'a': self.?b} == {}
    optional.of(1).optMap(x, x + 1).value() == 2
    cel.bind(x, 3, x + 1) == 4
    self.none == null && self.a == 1.0 && 1 < 2.5
    1 in self.xs && 'k' in self.m && !(5 in self.xs)
    '%s %d %.2f %x'.format([self.xs, 3, 1.5, 255]) == '[1, 2, 3] 3 1.50 ff'
    'a,b'.split(',').join('-') == 'a-b' && 'abc'.substring(1, 2) == 'b' && 'aBc'.lowerAscii() == 'abc'
    'abc 123'.find('[0-9]+') == '123' && '1 2'.findAll('[0-9]') == ['1', '2']
    self.s.matches('^a.*c$') && !self.s.matches('^b')
    quantity('1Gi').isGreaterThan(quantity('500Mi')) && quantity('2k').add(1).asInteger() == 2001
    isQuantity('1.3Gi') && !isQuantity('x')
    url('https://a.b:80/x?y=1').getHost() == 'a.b:80' && url('https://a.b/x?y=1').getQuery() == {'y': ['1']}
    ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && !isIP('1.2.3')
    cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))
    semver('1.2.3').isLessThan(semver('2.0.0')) && semver('1.2.3').major() == 1
    format.dns1123Label().validate('Ab').hasValue() && !format.dns1123Label().validate('ab').hasValue()
    [1, 2, 3].isSorted() && self.xs.sum() == 6 && self.xs.max() == 3 && self.xs.indexOf(2) == 1
    sets.contains([1, 2], [1]) && sets.equivalent([1, 2], [2, 1]) && !sets.intersects([1], [2])
    [[1], [2]].flatten() == [1, 2] && [3, 1].sort() == [1, 3] && [1, 1].distinct() == [1]
    [1, 3, 2].sortBy(x, -x) == [3, 2, 1] && self.xs.sortBy(x, 'ba'.substring(x % 2, 2)) == [1, 3, 2]
    [{'n': 2}, {'n': 1}].sortBy(e, e.n).map(e, e.n) == [1, 2] && [].sortBy(x, x) == []
    math.greatest(1, 5) == 5 && math.ceil(1.2) == 2.0
    timestamp('2024-01-01T00:00:00Z') + duration('1h') == timestamp('2024-01-01T01:00:00Z')
    timestamp('2024-03-01T00:00:00Z').getMonth() == 2 && duration('90s').getMinutes() == 1
    type(self.s) == string && type(self.a) == int && type(1u) == uint
    base64.encode(b'a') == 'YQ==' && string(base64.decode('YQ==')) == 'a'
    self.xs.exists(x, x == 3 || x / 0 > 1)
    false && 1 / 0 == 1 ? false : true
    -7 / 2 == -3 && -7 % 2 == -1
"""


@pytest.mark.parametrize("text", [line.strip() for line in TRUE.strip().splitlines()])
def test_what_holds_holds(text: str) -> None:
    assert value_of(text) is True


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("self.b == 1", "no such key: b"),
        ("self.xs[5] == 1", "index out of bounds: 5"),
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 == 0", "integer overflow"),
        ("self.a + self.s == 1", "no such overload"),
        ("self.xs.exists(x, x / 0 > 1)", "division by zero"),
    ],
)
def test_what_fails_on_a_value_says_why(text: str, words: str) -> None:
    with pytest.raises(CelFault, match=words.replace("+", r"\+")):
        value_of(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("foo", "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo\n | ^"),
        ("1 + 'x'", "ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.foo()", "ERROR: <input>:1:8: undeclared reference to 'foo' (in container '')"),
        ("self.a >", "Syntax error: mismatched input '<EOF>'"),
        ("Object{spec: 1}", "undeclared reference to 'Object'"),
    ],
)
def test_what_means_nothing_does_not_compile(text: str, words: str) -> None:
    assert words in refusal(text)


def test_an_expression_must_come_to_what_is_wanted() -> None:
    with pytest.raises(CelFault, match="cel expression must evaluate to a bool"):
        compile_expression("1 + 1", {}, "bool")


def test_objects_of_mutating_policies_are_made_by_the_path_of_their_type() -> None:
    made = value_of("Object{spec: Object.spec{replicas: 1, template: Object.spec.template{}}}")
    assert made == {"spec": {"replicas": 1, "template": {}}}
    with pytest.raises(CelFault, match=r'unexpected type name "Object.meta", expected "Object.spec"'):
        value_of("Object{spec: Object.meta{replicas: 1}}")


def test_patches_are_made_with_escaped_keys() -> None:
    text = "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b~c'), value: 'x'}]"
    (patch,) = to_json(value_of(text))
    assert patch == {"op": "add", "path": "/metadata/labels/a~1b~0c", "value": "x"}


def test_the_authorizer_is_asked_what_the_expression_spells_out() -> None:
    asked = []

    def check(who: str, attributes: Any) -> tuple[bool, str]:
        asked.append((who, attributes.group, attributes.resource, attributes.namespace, attributes.verb))
        return True, "because"

    program = compile_expression(
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').namespace('x').check('delete')"
        ".allowed() && authorizer.requestResource.check('use').reason() == 'because'",
        {"authorizer": "authorizer"},
    )
    requested = RequestInfo("create", resource="pods", namespace="y")
    assert program.evaluate({"authorizer": authorizer(check, requested)}) is True
    assert asked == [("ns:sa", "apps", "deployments", "x", "delete"), ("", "", "pods", "y", "use")]


def test_a_variable_of_a_policy_is_worked_out_once_and_only_when_it_is_read() -> None:
    made = []

    def make() -> int:
        made.append(1)
        return 3

    bindings = {"variables": {"n": Lazy(make)}, "self": ITSELF}
    assert not made
    assert value_of("variables.n + variables.n", **bindings) == 6
    assert len(made) == 1


def test_an_evaluation_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(CelFault, match="operation cancelled: actual cost limit exceeded"):
        value_of("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", self=list(range(200)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(value=_JSON)
@settings(max_examples=examples(30), deadline=None)
def test_every_value_equals_itself_and_is_in_a_list_of_it(value: Any) -> None:
    assert value_of("self == self && self in [self] && !(self != self)", self=value) is True


@given(one=st.integers(-50, 50), other=st.integers(-50, 50).filter(bool))
@settings(max_examples=examples(30), deadline=None)
def test_quotient_and_remainder_belong_together(one: int, other: int) -> None:
    assert value_of("a / b * b + a % b == a", a=one, b=other) is True


_SCRAPS = st.lists(
    st.sampled_from(
        ["self", ".a", "[0]", "+", "(", ")", "'x'", "1", "?", ":", "has(", ".all(x, ", "==", "!", "{", "}", ","]
    ),
    max_size=12,
)


@given(scraps=_SCRAPS)
@settings(max_examples=examples(60), deadline=None)
def test_whatever_is_written_is_a_value_or_a_fault(scraps: list[str]) -> None:
    text = "".join(scraps)
    is_value = False
    with suppress(CelFault):
        value_of(text)
        is_value = True
    assert not is_value or value_of(f"[{text}].size()") == 1


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(CelFault):
        value_of("(" * 5000 + "1" + ")" * 5000)
    with pytest.raises(CelFault):
        value_of("1" + " + 1" * 20000)


def test_an_entry_of_an_optional_map_has_the_type_of_its_entries() -> None:
    text = "namespaceObject.metadata.?labels[?'team'].orValue('').startsWith('a')"
    expression = Expression(text, BASE, "bool")
    assert expression.fault == ""
    assert expression.value({"namespaceObject": {"metadata": {"labels": {"team": "abc"}}}}) is True
    assert expression.value({"namespaceObject": {"metadata": {}}}) is False


def test_an_empty_list_takes_the_type_of_what_it_is_joined_with() -> None:
    for text in ("true ? [] : [1]", "true ? [1] : []", "[] + [1]", "['a'].map(x, 1)", "[1].filter(x, x > 0)"):
        assert Expression(text, BASE, "any").kind.shown() == "list(int)"
