"""One rule covers another exactly when nothing the other allows is lost: held against asking both about everything."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.rules import PolicyRule, missing

VERBS, GROUPS, NAMES = ("get", "list"), ("", "apps"), ("", "a", "b")
RESOURCES = (("pods", ""), ("pods", "log"), ("nodes", ""), ("nodes", "log"))
PATHS = ("/healthz", "/healthz/etcd", "/metrics")
EVERYTHING = [
    RequestInfo(verb, group, "v1", plural, subresource, "", name)
    for verb, group, (plural, subresource), name in product(VERBS, GROUPS, RESOURCES, NAMES)
] + [RequestInfo.of_path(verb, path) for verb, path in product(VERBS, PATHS)]


def some(*values: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True).map(tuple)


RESOURCE_RULES = st.builds(
    PolicyRule,
    some(*VERBS, "*"),
    some(*GROUPS, "*"),
    some("pods", "pods/log", "nodes", "*/log", "*"),
    st.one_of(st.just(()), some("a", "b")),
)
PATH_RULES = st.builds(
    lambda verbs, paths: PolicyRule(verbs, paths=paths), some(*VERBS, "*"), some(*PATHS, "/healthz/*", "*")
)
RULES = st.one_of(RESOURCE_RULES, PATH_RULES)


@settings(max_examples=examples(120))
@given(owned=st.lists(RULES, max_size=3), wanted=RULES)
def test_where_nothing_is_missing_nothing_is_gained(owned: list[PolicyRule], wanted: PolicyRule) -> None:
    if missing(owned, [wanted]):
        return
    for asked in EVERYTHING:
        if wanted.allows(asked):
            assert any(rule.allows(asked) for rule in owned), asked


@settings(max_examples=examples(80))
@given(owned=st.lists(RULES, max_size=3), wanted=RULES)
def test_holding_what_was_missing_as_well_is_enough(owned: list[PolicyRule], wanted: PolicyRule) -> None:
    assert missing([*owned, *missing(owned, [wanted])], [wanted]) == []


@given(RULES)
def test_whoever_holds_a_rule_lacks_nothing_of_it(rule: PolicyRule) -> None:
    assert missing([rule], [rule]) == []


def test_what_is_missing_is_told_by_resource() -> None:
    wanted = PolicyRule(("get", "list", "delete"), ("", "apps"), ("pods",))
    found = missing([PolicyRule(("get", "list"), ("",), ("pods",))], [wanted])
    assert sorted(rule.text() for rule in found) == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list" "delete"]}',
    ]
