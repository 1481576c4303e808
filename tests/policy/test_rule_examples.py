"""The declaration of each rule: its bad example has the fault, its good one has not, wherever the rule is checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tools.rules_page import NAMES, PAGE, PERMISSIONS, names_module, permissions_page, rules_page

from build.ruled_pods import CompiledRules
from shoal.api.plain_objects import PlainObjects, add_file
from shoal.data.named_objects import VALIDATING
from shoal.policy import kinds
from shoal.policy.admission_rules.checks import findings
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.policies import policy_name, validating_policies
from shoal.policy.catalogue import at_admission, declared, faults, reason_of, rules
from shoal.policy.declarations import Rule
from shoal.policy.kinds import GroupKind
from shoal.policy.lint import lint_files
from shoal.policy.object_set import ObjectSet, with_namespace

Obj = dict[str, Any]
EVERY_KIND = [each for each in vars(kinds).values() if isinstance(each, GroupKind)]
RULES = list(rules().values())


@pytest.fixture(scope="module")
def compiled() -> CompiledRules:
    return CompiledRules()


def read(rule: Rule, text: str) -> PlainObjects:
    found = PlainObjects()
    add_file(found, rule.file, text.encode())
    assert found.errors == []
    return found


def looked_up(rule: Rule, objects: list[Obj]) -> ObjectSet:
    """Of a cluster all objects are known, of files only those that they have."""
    return ObjectSet(objects, EVERY_KIND if rule.evidence == "cluster" else ())


def linted(rule: Rule, text: str) -> dict[str, str]:
    """The found reasons with their severity."""
    plain = read(rule, text)
    found = lint_files(plain, looked_up(rule, [each.obj for each in plain.objects]), frozenset(faults()))
    assert not found.skipped
    return {each.rule: each.severity for each in found.findings}


def warned(rule: Rule, text: str) -> set[str]:
    """The reasons that are found when the objects are created."""
    objects = [with_namespace(plain.obj) for plain in read(rule, text).objects]
    context = looked_up(rule, objects)
    modes = RuleModes(rules=dict.fromkeys(at_admission(), "warn"))
    return {each.rule for obj in objects for each in findings(obj, context, modes)}


def refused(compiled: CompiledRules, text: Rule, example: str) -> set[str]:
    """The names of the policies whose expressions are not true."""
    objects = [plain.obj for plain in read(text, example).objects]
    labels: dict[str, str] = next((obj["metadata"]["labels"] for obj in objects if obj["kind"] == "Namespace"), {})
    return {name for obj in objects if obj["kind"] == "Pod" for name, _ in compiled.refusals(obj, labels)}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.reason)
def test_the_bad_example_has_the_fault_and_the_good_one_has_none(rule: Rule, compiled: CompiledRules) -> None:
    assert all(rule.bad.count(change.bad) == 1 for change in rule.changes)
    bad, good = rule.bad, rule.good
    if rule.reason in faults():
        assert rule.reason in linted(rule, bad)
        assert "error" not in linted(rule, good).values()
        assert rule.reason not in linted(rule, good)
    if rule.place and read(rule, bad).objects:
        assert rule.reason in warned(rule, bad)
        assert rule.reason not in warned(rule, good)
    if rule.policy is not None:
        assert policy_name(rule.reason) in refused(compiled, rule, bad)
        assert policy_name(rule.reason) not in refused(compiled, rule, good)


def test_each_rule_is_declared_once_with_an_id_of_its_own() -> None:
    found = [rule for each in declared() for rule in each.rules]
    assert len({rule.id for rule in found}) == len({rule.reason for rule in found}) == len(found)
    assert reason_of("shl-305") == reason_of("VisibleDevicesByHand") == "VisibleDevicesByHand"


def test_each_reported_fault_is_one_of_a_declared_rule() -> None:
    reported = {reason for each in declared() for reason in each.reasons}
    assert {reason for reason in reported if reason not in rules()} == set()


def texts(rule: Rule) -> Iterator[str]:
    yield from (rule.fault, rule.effect, rule.fix)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.reason)
def test_a_declaration_says_what_is_wrong_what_follows_and_what_to_do(rule: Rule) -> None:
    assert all(text and not text.endswith(".") and text == text.strip() for text in texts(rule))
    assert len(set(texts(rule))) == len(list(texts(rule)))
    assert all(link.startswith("https://") for link in rule.links)


def test_roles_name_the_policies_of_the_rules_of_today() -> None:
    """`python -m tools.rules_page` writes them."""
    assert NAMES.read_text(encoding="utf-8") == names_module()
    page = PERMISSIONS.read_text(encoding="utf-8")
    assert page == permissions_page(page)


def test_roles_name_every_binding_of_the_policies_of_rules() -> None:
    modes = [RuleModes(default=mode) for mode in ("off", "warn", "enforce")]
    made = {
        one["metadata"]["name"] for each in modes for policy in validating_policies(each) for one in policy.bindings
    }
    assert made <= set(VALIDATING.split(","))


def test_the_page_of_rules_has_the_declarations_of_today() -> None:
    """`python -m tools.rules_page` writes it."""
    assert PAGE.read_text(encoding="utf-8") == rules_page()
