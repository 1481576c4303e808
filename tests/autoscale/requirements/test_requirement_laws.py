"""The algebra agrees with a literal reading of each operator, value by value."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.autoscale.requirements import (
    WELL_KNOWN,
    AdmittedValues,
    RequirementSet,
    admitted_values,
    min_values_of,
    requirement_set,
)
from shoal.units.errors import UserError

_UNIVERSE = ["a", "b", "two", "1.5", *map(str, range(-2, 8))]
_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]

Literal = tuple[str, tuple[str, ...]]


def _literally_admits(requirement: Literal, value: str) -> bool:
    operator, values = requirement
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return True
        case "DoesNotExist":
            return False
    try:
        number = int(value)
    except ValueError:
        return False
    bound = int(values[0])
    return {"Gt": number > bound, "Lt": number < bound, "Gte": number >= bound, "Lte": number <= bound}[operator]


def _with_bounds_literally(requirements: list[Literal], value: str) -> bool:
    return all(_literally_admits(each, value) for each in requirements)


@st.composite
def _requirements(draw: st.DrawFn) -> Literal:
    operator = draw(st.sampled_from(_OPERATORS))
    if operator in {"Exists", "DoesNotExist"}:
        return operator, ()
    if operator in {"In", "NotIn"}:
        return operator, tuple(draw(st.lists(st.sampled_from(_UNIVERSE), min_size=1, max_size=4, unique=True)))
    return operator, (str(draw(st.integers(0, 6))),)


def _read(requirement: Literal) -> AdmittedValues:
    return admitted_values(requirement[0], requirement[1])  # type: ignore[arg-type]


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(_requirements(), min_size=1, max_size=4))
def test_an_intersection_admits_what_every_requirement_admits(requirements: list[Literal]) -> None:
    together = _read(requirements[0])
    for each in requirements[1:]:
        together = together.intersection(_read(each))

    assert {value for value in _UNIVERSE if together.has(value)} == {
        value for value in _UNIVERSE if _with_bounds_literally(requirements, value)
    }


@settings(max_examples=examples(200), deadline=None)
@given(_requirements(), _requirements(), _requirements())
def test_an_intersection_depends_on_neither_order_nor_grouping(one: Literal, two: Literal, three: Literal) -> None:
    a, b, c = map(_read, (one, two, three))

    assert a.intersection(b) == b.intersection(a)
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))


@settings(max_examples=examples(200), deadline=None)
@given(_requirements(), _requirements())
def test_two_requirements_overlap_where_some_value_satisfies_both(one: Literal, two: Literal) -> None:
    a, b = _read(one), _read(two)
    some = any(_with_bounds_literally([one, two], value) for value in _UNIVERSE)
    if not (a.is_open and b.is_open):
        assert a.overlaps(b) == some
    elif some:
        assert a.overlaps(b)


@pytest.mark.parametrize(("operator", "values"), [("Gt", ()), ("Lt", ("x",)), ("Gte", ("1", "2")), ("Lte", ("1.0",))])
def test_a_bound_needs_exactly_one_whole_number(operator: str, values: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="needs exactly one whole number"):
        admitted_values(operator, values)  # type: ignore[arg-type]


def test_an_unknown_operator_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError) as error:
        admitted_values("Near", ("x",))  # type: ignore[arg-type]

    assert "unknown operator" in str(error.value)
    assert "DoesNotExist" in error.value.fix


def test_the_larger_number_of_different_values_counts() -> None:
    both = admitted_values("Exists", (), 2).intersection(admitted_values("In", ("a", "b"), 5))

    assert both.min_values == 5


def _set(*requirements: tuple[str, str, tuple[str, ...]]) -> RequirementSet:
    return requirement_set((key, admitted_values(operator, values)) for key, operator, values in requirements)  # type: ignore[arg-type]


def test_an_undefined_custom_label_is_incompatible_unless_its_absence_is_wanted() -> None:
    nothing = RequirementSet()

    assert nothing.incompatible_key(_set(("team", "In", ("a",)))) == "team"
    assert nothing.is_compatible(_set(("team", "NotIn", ("a",))))
    assert nothing.is_compatible(_set(("team", "DoesNotExist", ())))
    assert nothing.is_compatible(_set(("kubernetes.io/arch", "In", ("arm64",))), WELL_KNOWN)


def test_old_names_of_labels_mean_the_current_ones() -> None:
    offered = _set(("topology.kubernetes.io/zone", "In", ("z1",)))

    assert not offered.is_compatible(_set(("failure-domain.beta.kubernetes.io/zone", "In", ("z2",))))


def test_requirements_on_one_label_are_intersected() -> None:
    together = _set(("cpus", "Gt", ("4",)), ("cpus", "Lt", ("9",)))

    assert together.get("cpus") == admitted_values("Gte", ("5",)).intersection(admitted_values("Lte", ("8",)))


def test_different_values_are_counted_over_the_leading_types() -> None:
    types = [{"family": ["a"]}, {"family": ["a"]}, {"family": ["b", "c"]}]

    assert [min_values_of(types, {"family": least}).needed for least in (1, 2, 3, 4)] == [1, 3, 3, None]
    assert min_values_of(types, {"family": 4}).missing == {"family": 3}
    assert min_values_of(types, {}).needed == 0


def test_every_pair_of_operators_has_one_normal_form() -> None:
    table = [(operator, ("3",) if operator in {"Gt", "Lt", "Gte", "Lte"} else ()) for operator in _OPERATORS[2:]]
    for one, other in product(table, table):
        both = _read(one).intersection(_read(other))
        assert both.is_open or not both.is_bounded
