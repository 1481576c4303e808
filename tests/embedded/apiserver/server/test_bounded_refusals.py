"""What is said of a refusal is bounded: it is made on the event loop."""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.field_errors import FieldError, required
from shoal.embedded.apiserver.status import LONGEST_TEXT, ApiError, Cause, apply_conflict, bad_request, invalid


def test_of_very_many_faults_the_first_ones_are_told() -> None:
    errors: list[FieldError] = [required(f"data[k{number}]", "x" * 50) for number in range(90_000)]
    told = invalid("ConfigMap", "", "a", errors).status()
    assert len(msgspec.json.encode(told)) < 4 * LONGEST_TEXT
    assert told["details"]["causes"][0]["field"] == "data[k0]"
    assert told["message"].startswith('ConfigMap "a" is invalid: [data[k0]: Required value: ')


def test_so_are_the_conflicts_of_an_apply_and_a_long_message() -> None:
    causes = [Cause("FieldManagerConflict", "conflict", f".data.k{number}") for number in range(90_000)]
    for error in (apply_conflict("x" * 10_000_000, causes), bad_request("y" * 10_000_000)):
        assert len(msgspec.json.encode(error.status())) < 4 * LONGEST_TEXT


def test_a_refusal_of_ordinary_length_is_told_whole() -> None:
    errors = [required(f"data[k{number}]") for number in range(300)]
    error = invalid("ConfigMap", "", "a", errors)
    told = error.status()
    assert told["message"] == error.message
    assert told["details"] == error.details


def test_a_single_cause_that_is_very_long_is_cut() -> None:
    causes = [{"reason": "r", "message": "m" * 1_000_000, "field": "f"}]
    told = ApiError(409, "Conflict", "no", details={"causes": causes}).status()
    assert told["details"]["causes"][0]["message"].startswith("mmm")
    assert len(msgspec.json.encode(told)) < 2 * LONGEST_TEXT
