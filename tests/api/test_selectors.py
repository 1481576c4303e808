"""Which labels a selector means, in both of its spellings."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.requirement import Operator, Requirement
from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import LabelSelector, Selector, selector_of
from shoal.units.errors import UserError, Where

LABELS = {"app": "web", "tier": "front", "slots": "8", "empty": "", "in": "yes"}

MATCHES = {
    "an empty text selects everything": ("", True),
    "blanks are nothing": ("  ", True),
    "equality": ("app=web", True),
    "equality with two signs": ("app==web", True),
    "another value": ("app=db", False),
    "inequality": ("app!=db", True),
    "inequality holds where the key is absent": ("zone!=a", True),
    "equality does not": ("zone=a", False),
    "an empty value asked for": ("empty=", True),
    "an empty value is not an absent one": ("zone=", False),
    "in a set": ("app in (db,web)", True),
    "in a set without blanks": ("app in(db,web)", True),
    "in a set with many": ("app  in  ( db , web )", True),
    "not in a set": ("app notin (db)", True),
    "not in a set where the key is absent": ("zone notin (a)", True),
    "a set may hold the empty value": ("empty in (,x)", True),
    "and nothing else": ("empty in ()", True),
    "a bare key asks for presence": ("app", True),
    "of whatever value": ("empty", True),
    "an absent key is not present": ("zone", False),
    "an exclamation mark asks for absence": ("!zone", True),
    "which fails for a present key": ("!app", False),
    "greater than": ("slots>7", True),
    "greater than is strict": ("slots>8", False),
    "less than": ("slots < 9", True),
    "a value that is no number satisfies neither": ("app>1", False),
    "all conditions must hold": ("app=web,tier=front,!zone", True),
    "and one that fails is enough": ("app=web,tier=back", False),
    "in is a key where a key is due": ("in in (yes)", True),
    "and a value where a value is due": ("app!=in", True),
}


@pytest.mark.parametrize(("text", "want"), MATCHES.values(), ids=MATCHES)
def test_the_text_form_means(text: str, want: bool) -> None:
    assert parse_label_selector(text).matches(LABELS) is want


REFUSED = {
    "a trailing comma": ("a,", "found the end, expected a label key"),
    "a leading comma": (",a", 'found ",", expected a label key'),
    "a missing comma": ("a=b c", "expected ',' or the end"),
    "an unclosed set": ("a in (b", "found the end, expected ',' or ')'"),
    "a set without its parenthesis": ("a in b", "expected '('"),
    "an operator without a key": ("=b", 'found "=", expected a label key'),
    "an unknown operator": ("a is b", 'found "is", expected in, notin, ='),
    "absence with a value": ("!a=b", "expected ',' or the end"),
    "two values": ("a=b=c", "expected ',' or the end"),
    "a comparison with a word": ("a>b", '"b" after > is not a whole number'),
    "a comparison with nothing": ("a>", "is not a whole number"),
    "a key with two slashes": ("a/b/c=d", '"a/b/c" is not a label key'),
    "a key with an upper-case prefix": ("A/b=d", "lowercase DNS name"),
    "a key that ends in a dash": ("a-=d", "is not a label key"),
    "a value too long": ("a=" + "x" * 64, "no more than 63 characters"),
    "a value with a slash": ("a=b/c", "is not a label value"),
}


@pytest.mark.parametrize(("text", "complaint"), REFUSED.values(), ids=REFUSED)
def test_the_text_form_refuses(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_label_selector(text)
    assert complaint in str(refusal.value)


OBJECTS = {
    "an absent selector selects nothing": (None, False),
    "an empty one selects everything": (LabelSelector(), True),
    "labels must be equal": (LabelSelector({"app": "web"}), True),
    "all of them": (LabelSelector({"app": "web", "tier": "back"}), False),
    "expressions are added to labels": (
        LabelSelector({"app": "web"}, (Requirement("tier", "NotIn", ("front",)),)),
        False,
    ),
    "exists": (LabelSelector(match_expressions=(Requirement("empty", "Exists"),)), True),
    "does not exist": (LabelSelector(match_expressions=(Requirement("zone", "DoesNotExist"),)), True),
}


@pytest.mark.parametrize(("selector", "want"), OBJECTS.values(), ids=OBJECTS)
def test_the_object_form_means(selector: LabelSelector | None, want: bool) -> None:
    assert selector_of(selector).matches(LABELS) is want


BAD_OBJECTS = {
    "In without values": (Requirement("a", "In"), "sel.matchExpressions[0].values: operator In needs at least one"),
    "Exists with values": (Requirement("a", "Exists", ("b",)), "takes no values"),
    "Gt, which is for nodes": (Requirement("a", "Gt", ("1",)), "is for node selectors only"),
    "a key that is none": (Requirement("a b", "Exists"), "sel.matchExpressions[0].key"),
    "a value that is none": (Requirement("a", "In", ("ok", "b c")), "sel.matchExpressions[0].values[1]"),
}


@pytest.mark.parametrize(("requirement", "complaint"), BAD_OBJECTS.values(), ids=BAD_OBJECTS)
def test_the_object_form_refuses(requirement: Requirement, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        LabelSelector(match_expressions=(requirement,)).check(Where(path="sel"))
    assert complaint in str(refusal.value)


def test_matching_labels_are_checked_like_labels() -> None:
    with pytest.raises(UserError, match=r"sel\.matchLabels\[x/y\]: \"a b\" is not a label value"):
        LabelSelector({"x/y": "a b"}).check(Where(path="sel"))


def test_the_order_labels_were_written_in_makes_no_difference() -> None:
    assert LabelSelector({"a": "1", "b": "2"}).selector() == LabelSelector({"b": "2", "a": "1"}).selector()


def test_everything_and_nothing_are_told_apart() -> None:
    assert Selector.EVERYTHING.is_everything()
    assert not Selector.NOTHING.is_everything()
    assert not Selector.NOTHING.matches({})


words = st.sampled_from(["a", "b", "in", "notin", "x.y/z", "8", "12"])
labels = st.dictionaries(words, st.sampled_from(["", "a", "b", "8", "12"]))
OPERATORS: list[Operator] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
SPELLED: dict[Operator, str] = {"In": "in", "NotIn": "notin", "Gt": ">", "Lt": "<"}


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator: Operator = draw(st.sampled_from(OPERATORS))
    if operator in {"Gt", "Lt"}:
        return Requirement(draw(words), operator, (str(draw(st.integers(-20, 20))),))
    if operator in {"In", "NotIn"}:
        values = draw(st.sets(st.sampled_from(["", "a", "b", "8"]), min_size=1))
        return Requirement(draw(words), operator, tuple(sorted(values)))
    return Requirement(draw(words), operator)


def spelled(requirement: Requirement) -> str:
    key, values = requirement.key, ",".join(requirement.values)
    match requirement.operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "Gt" | "Lt":
            return f"{key}{SPELLED[requirement.operator]}{values}"
        case "In" | "NotIn":
            return f"{key} {SPELLED[requirement.operator]} ({values})"


@given(st.lists(requirements(), max_size=4))
def test_both_spellings_give_the_same_value(wanted: list[Requirement]) -> None:
    assert parse_label_selector(",".join(map(spelled, wanted))) == Selector(tuple(wanted))


@given(requirements(), labels)
def test_each_operator_is_the_opposite_of_its_opposite(requirement: Requirement, have: dict[str, str]) -> None:
    opposite: dict[Operator, Operator] = {"In": "NotIn", "Exists": "DoesNotExist"}
    if requirement.operator in opposite:
        other = Requirement(requirement.key, opposite[requirement.operator], requirement.values)
        assert requirement.matches(have) is not other.matches(have)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UserError):
        assert parse_label_selector(text).requirements is not None
