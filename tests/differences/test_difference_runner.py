"""The pure parts of `python -m tools.differences`: what counts as a difference, and what a seed draws."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import Any

import pytest
import yaml
from tools.differences import allowed, fuzzing, scenarios
from tools.differences.__main__ import OBJECTS
from tools.differences.comparing import Difference, differences
from tools.differences.sending import Answer

from build.cluster_schemas import built_in
from shoal.embedded.apiserver.schema.decode import conform
from shoal.embedded.apiserver.schema.kubernetes import Shapes


def refusal(*causes: tuple[str, str, str], code: int = 422) -> Answer:
    listed = [{"field": field, "reason": reason, "message": message} for field, reason, message in causes]
    message = "; ".join(message for _, _, message in causes)
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": {"causes": listed}}
    return Answer(code, [], body)


def obj(**fields: Any) -> Answer:
    return Answer(200, [], {"kind": "ConfigMap", **fields})


def said(left: Answer, right: Answer) -> list[str]:
    return [one.signature for one in differences(left, right)]


def test_what_servers_must_choose_differently_is_no_difference() -> None:
    left = {"uid": "0d1f9e4e-0000-4000-8000-000000000001", "resourceVersion": "5", "t": "2026-01-01T00:00:00Z"}
    right = {"uid": "7d1f9e4e-0000-4000-8000-000000000002", "resourceVersion": "9", "t": "2026-01-02T00:00:00Z"}
    assert said(obj(metadata=left), obj(metadata=right)) == []


def test_a_time_that_is_absent_or_null_is_a_difference() -> None:
    assert said(obj(t=None), obj()) == ["body t: null | (absent)"]
    assert said(obj(t=None), obj(t="2026-01-02T00:00:00Z")) == ['body t: null | "…"']


def test_another_code_is_one_difference_whatever_the_bodies_say() -> None:
    left = refusal(("spec.a", "FieldValueInvalid", "Invalid value: 3"))
    assert said(left, obj()) == ["code code: N  Invalid value: N | N "]


def test_causes_are_compared_one_by_one() -> None:
    left = refusal(("spec.a[0]", "FieldValueInvalid", "Invalid value: 3: odd"), ("spec.b", "FieldValueRequired", "R"))
    right = refusal(("spec.a[0]", "FieldValueInvalid", "Invalid value: 3: even"))
    assert said(left, right) == [
        "words spec.a[]: FieldValueInvalid Invalid value: N: odd | FieldValueInvalid Invalid value: N: even",
        "field spec.b: FieldValueRequired R | ",
    ]


def test_equal_causes_in_another_order_are_a_difference_of_words() -> None:
    one, two = ("a", "FieldValueRequired", "x"), ("b", "FieldValueRequired", "y")
    assert said(refusal(one, two), refusal(two, one)) == ["words order of causes:  | "]


def test_a_warning_that_one_server_alone_sends_is_a_difference() -> None:
    assert said(Answer(200, ['299 - "old"'], {}), Answer(200, [], {})) == ['field warning: N - "…" | ']


def test_signatures_leave_out_what_the_request_has_chosen() -> None:
    first = Difference(1, "spec.a", 'Invalid value: "one": at most 3', "").signature
    assert first == Difference(1, "spec.a", 'Invalid value: "two": at most 5', "").signature


def test_an_allowed_difference_has_its_reason() -> None:
    known = [allowed.Allowed("^field warning", "there are no certificates")]
    assert allowed.reason_for("field warning: x | ", known) == "there are no certificates"
    assert allowed.reason_for("code code: a | b", known) == ""


@pytest.fixture(scope="module")
def bases() -> list[fuzzing.Base]:
    return fuzzing.bases(yaml.safe_load(OBJECTS.read_text()), "space")


def test_a_seed_draws_the_same_requests_again(bases: list[fuzzing.Base]) -> None:
    first = list(fuzzing.mutations(bases, 7, 40, Shapes()))
    assert first == list(fuzzing.mutations(bases, 7, 40, Shapes()))
    assert first != list(fuzzing.mutations(bases, 8, 40, Shapes()))


def test_drawing_leaves_the_objects_as_they_are(bases: list[fuzzing.Base]) -> None:
    before = [str(one.object) for one in bases]
    assert len(list(fuzzing.mutations(bases, 1, 200, Shapes()))) == 200
    assert [str(one.object) for one in bases] == before


def test_a_draw_may_be_cut_short_and_goes_the_same_way(bases: list[fuzzing.Base]) -> None:
    few = list(islice(fuzzing.mutations(bases, 3, 100, Shapes()), 10))
    assert few == list(fuzzing.mutations(bases, 3, 10, Shapes()))


def test_every_object_has_only_fields_that_its_kind_declares(bases: list[fuzzing.Base]) -> None:
    for base in bases:
        version, kind = base.object["apiVersion"], base.object["kind"]
        assert conform(deepcopy(base.object), built_in(version, kind), kind=kind, api_version=version) == []


def test_every_scenario_can_be_sent(bases: list[fuzzing.Base]) -> None:
    listed = scenarios.read()
    assert len({one.name for one in listed}) == len(listed)
    for scenario in listed:
        for request in scenarios.requests(scenario, "space", bases):
            assert request.path.startswith("/"), scenario.name
            assert "{" not in request.path, scenario.name
