"""Formulas are computed as written, and everything else in them is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.scaled_objects.formula import Formula
from shoal.autoscale.scaled_objects.formula_functions import FormulaError
from shoal.autoscale.scaled_objects.modifiers import (
    CompositeMetric,
    TriggerValue,
    composite_metric,
    is_active_by_formula,
    modifiers_fault,
)
from shoal.autoscale.scaled_objects.spec import AdvancedOptions, Fallback, ScaledObjectSpec, ScalingModifiers, Trigger

VALUES = {"a": 3.0, "b": 4.0, "none_yet": None}

COMPUTED = [
    ("a + b * 2", 11.0),
    ("(a + b) * 2", 14.0),
    ("7 / 2", 3.5),
    ("7 % 4", 3.0),
    ("2 ** 3 ^ 2", 512.0),
    ("-2 ** 2", -4.0),
    ("a - b - 1", -2.0),
    ("a < 5 ? a + b : 5", 7.0),
    ("a > 5 ? 1 : b > 3 ? 2 : 3", 2.0),
    ("not (a > b) and b >= 4 ? 1 : 0", 1.0),
    ("a == 3 && b != 3 || false ? 9 : 8", 9.0),
    ("none_yet ?? a", 3.0),
    ("none_yet ?? none_yet", None),
    ("1 + none_yet ?? 5", 6.0),
    ("none_yet == nil ? b : a", 4.0),
    ("let x = a + 1; x * x", 16.0),
    ("if a > b { 1 } else { 2 }", 2.0),
    ("count([a, b, 9], {# > 3}) > 1 ? 5 : 0", 5.0),
    ("count([a, b], # > 3)", 1.0),
    ("sum([a, b]) + max(a, [b, 1]) + min(a, b)", 14.0),
    ("sum(map([a, b], {# * 2}))", 14.0),
    ("sum([a, b], # * 2)", 14.0),
    ("mean(a, b) + median([1, 2, 9])", 5.5),
    ("any([a, b], {# == 4}) ? ceil(1.2) : floor(1.2)", 2.0),
    ("all(filter([a, b], # > 3), # == 4) ? round(2.5) : abs(-7)", 3.0),
    ("one([a, b], # > 3) and none([a, b], # > 9) ? len([a, b]) : 0", 2.0),
    ("a in [1, 3] ? 1 : 2", 1.0),
    ("a not in [1, 3] ? 1 : 2", 2.0),
    ("float('2.5') + int(3.9)", 5.5),
    ("1_000 + 1e3 + .5", 2000.5),
]


@pytest.mark.parametrize(("text", "wanted"), COMPUTED, ids=[row[0] for row in COMPUTED])
def test_formulas_are_computed(text: str, wanted: float | None) -> None:
    assert Formula(text, VALUES).evaluate(VALUES) == wanted


REFUSED = [
    ("a + c", "unknown name c (1:5)"),
    ("exit(1)", "unknown name exit (1:1)"),
    ("a.b", "unrecognized character '.' (1:2)"),
    ("a +", "unexpected token 'end of formula' (1:1)"),
    ("a b", "unexpected token 'b' (1:3)"),
    ("(a", "expected ')', found 'end of formula' (1:1)"),
    ("# > 1", "unexpected token '#' (1:1)"),
    ("a > 1", "invalid argument for float (type bool)"),
    ("a ? 1 : 2", "non-bool expression (type float64) used as condition"),
    ("none_yet + 1", "invalid operation: nil + int"),
    ("true + 1", "invalid operation: bool + int"),
    ("a % 2", "invalid operation: float64 % int"),
    ("1 % 0", "integer divide by zero"),
    ("max()", "not enough arguments to call max"),
    ("float(a) > 1", "formula returned non-float result True"),
    ("(" * 60 + "a" + ")" * 60, "the formula is nested more than 50 deep"),
    ("-" * 60 + "a", "the formula is nested more than 50 deep"),
    ("a" * 5000, "the formula has more than 4096 letters"),
    ("'it''", 'unrecognized character "\'" (1:5)'),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_cannot_be_computed_is_refused(text: str, message: str) -> None:
    with pytest.raises(FormulaError) as refusal:
        Formula(text, VALUES).evaluate(VALUES)
    assert str(refusal.value) == message


@st.composite
def arithmetic(draw: st.DrawFn, depth: int = 3) -> str:
    """A formula that means the same in Python."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(["a", "b", "2.5", "7", "0.5"]))
    left, right = draw(arithmetic(depth - 1)), draw(arithmetic(depth - 1))
    operator = draw(st.sampled_from(["+", "-", "*"]))
    text = f"{left} {operator} {right}"
    return f"({text})" if draw(st.booleans()) else text


@settings(max_examples=examples(150))
@given(arithmetic(), st.floats(-100, 100), st.floats(-100, 100))
def test_arithmetic_agrees_with_python(text: str, a: float, b: float) -> None:
    found = Formula(text, ["a", "b"]).evaluate({"a": a, "b": b})
    assert found == float(eval(text, {"__builtins__": {}}, {"a": a, "b": b}))  # noqa: S307 - the oracle


@settings(max_examples=examples(200))
@given(st.text(alphabet="ab123 .+-*/()?:<>=![]{}#,;'\"&|\n_", max_size=40))
def test_any_text_is_computed_or_refused(text: str) -> None:
    found: object = None
    with suppress(FormulaError):
        found = Formula(text, ["a", "b"]).evaluate({"a": 1.0, "b": None})
    assert found is None or isinstance(found, float)


def metric(formula: str, fallback: Fallback | None = None, **values: TriggerValue) -> CompositeMetric:
    return composite_metric(ScalingModifiers(formula, "2"), values, fallback)


BY_FORMULA = Fallback(3, 7, "scalingModifiers")


def test_a_trigger_that_failed_too_often_is_nil_if_the_formula_decides_the_fallback() -> None:
    failed = TriggerValue(None, 4)
    assert metric("x ?? 5", BY_FORMULA, x=failed).value_milli == 5000
    assert metric("x ?? nil", BY_FORMULA, x=failed).value_milli == 14_000
    assert metric("x ?? 5", Fallback(3, 7), x=failed).error == "trigger x has no value"
    assert metric("x ?? 5", BY_FORMULA, x=TriggerValue(None, 3)).error == "trigger x has no value"
    assert metric("x + 1", BY_FORMULA, x=failed).error.endswith("invalid operation: nil + int")


def test_a_result_that_is_no_number_is_an_error() -> None:
    assert metric("x / 0", x=TriggerValue(0.0)).error.endswith("the result is nan")
    assert metric("x / 0", x=TriggerValue(1.0)).error.endswith("the result is inf")


def test_activity_needs_more_than_the_activation_target() -> None:
    modifiers = ScalingModifiers("x", "2", "5")
    assert not is_active_by_formula(modifiers, CompositeMetric(5000))
    assert is_active_by_formula(modifiers, CompositeMetric(5001))
    assert not is_active_by_formula(modifiers, CompositeMetric(9000, "it failed"))
    assert not is_active_by_formula(ScalingModifiers("x", "2"), CompositeMetric(0))


FAULTS = [
    (ScalingModifiers("", "2"), "error ScalingModifiers.Formula is mandatory"),
    (ScalingModifiers("x", ""), "formula is given but target is empty"),
    (ScalingModifiers("y", "2"), "unknown name y (1:1)"),
    (ScalingModifiers("load", "2"), "unknown name load (1:1)"),
    (ScalingModifiers("x", "-2"), "to valid target"),
    (ScalingModifiers("x", "2", "", "Utilization"), "error trigger type is Utilization"),
    (ScalingModifiers("x > 1 ? x : 2", "0.5"), ""),
    (ScalingModifiers(), ""),
]


@pytest.mark.parametrize(("modifiers", "part"), FAULTS, ids=[row[1] or row[0].formula for row in FAULTS])
def test_modifiers_are_checked(modifiers: ScalingModifiers, part: str) -> None:
    triggers = (Trigger("cron", "x"), Trigger("cpu", "load"))
    fault = modifiers_fault(ScaledObjectSpec(advanced=AdvancedOptions(scaling_modifiers=modifiers), triggers=triggers))
    assert part in fault
    assert bool(fault) == bool(part)
