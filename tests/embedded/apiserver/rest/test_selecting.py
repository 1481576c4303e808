"""Selectors over records, and what an event is to a watcher who selects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.embedded.apiserver.kinds.table import STRATEGIES
from shoal.embedded.apiserver.resource import Home, Ref, Resource
from shoal.embedded.apiserver.rest.selection import selection
from shoal.embedded.apiserver.rest.watching import seen_as
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.state.record import Record
from shoal.embedded.apiserver.status import ApiError

PODS = Resource("", "v1", "pods", "Pod", True, strategy=STRATEGIES["", "pods"])
NAMES = st.sampled_from(["a", "b", "c"])
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["", "x", "y"]))
FIELDS = st.fixed_dictionaries({"spec.nodeName": st.sampled_from(["", "n1", "n2"])})


def record(name: str, labels: dict[str, str], fields: dict[str, str], revision: int = 1) -> Record:
    return Record(Ref(Home("", "pods"), "ns", name), "u", revision, b"{}", labels, fields)


RECORDS = st.builds(record, NAMES, LABELS, FIELDS)


@given(RECORDS, st.sampled_from(["metadata.name", "spec.nodeName"]), st.sampled_from(["", "a", "n1"]), st.booleans())
def test_a_field_term_compares_the_text_of_the_field(found: Record, field: str, value: str, equal: bool) -> None:
    chosen = selection(PODS, "", f"{field}{'=' if equal else '!='}{value}")
    actual = found.ref.name if field == "metadata.name" else found.fields[field]
    assert chosen.selects(found) is ((actual == value) is equal)


@given(RECORDS, st.lists(st.sampled_from(["app=x", "app!=x", "tier", "!tier", "app in (x,y)"]), max_size=3))
def test_terms_of_labels_all_have_to_hold(found: Record, terms: list[str]) -> None:
    together = selection(PODS, ",".join(terms), "").selects(found)
    assert together is all(selection(PODS, term, "").selects(found) for term in terms)


@given(RECORDS, RECORDS, st.sampled_from(["app=x", "app!=x", "tier"]))
def test_a_watcher_who_replays_what_it_is_told_holds_just_what_is_selected(
    before: Record, after: Record, labels: str
) -> None:
    chosen = selection(PODS, labels, "")
    held = chosen.selects(before)
    told = seen_as(Event("MODIFIED", after, before), chosen)
    if told == "ADDED":
        assert not held
        held = True
    elif told == "DELETED":
        assert held
        held = False
    elif told == "MODIFIED":
        assert held
    assert held is chosen.selects(after)
    gone = seen_as(Event("DELETED", after, after), chosen)
    assert (gone == "DELETED") is held


@pytest.mark.parametrize(
    ("text", "value"),
    [("spec.nodeName=a\\,b", "a,b"), ("spec.nodeName=a\\=b", "a=b"), ("spec.nodeName==n\\\\1", "n\\1")],
)
def test_escaped_letters_of_a_field_selector_stand_for_themselves(text: str, value: str) -> None:
    chosen = selection(PODS, "", text)
    assert chosen.fields[0].value == value


@pytest.mark.parametrize("text", ["spec.image=x", "nonsense", "spec.nodeName=a\\x"])
def test_a_field_selector_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selection(PODS, "", text)
    assert refused.value.code == 400
