"""Refuses patches with Kubernetes' codes and messages.

A JSON patch that does not apply, a broken directive and a list item without its key each have their own answer, and
some of them (500 without a reason) are plainly accidents of its implementation; clients see them, so they are kept.
"""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.schema.go_values import json_kind
from shoal.embedded.apiserver.status import ApiError, bad_request


def does_not_apply() -> ApiError:
    """Kubernetes does not tell which operation failed or why."""
    words = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", words, details={})


def wrong_json(value: Any, go_type: str) -> ApiError:
    """The patch is JSON, but of another type than patches of its kind are."""
    return bad_request(f"json: cannot unmarshal {json_kind(value)} into Go value of type {go_type}")


def too_many_operations(found: int, limit: int) -> ApiError:
    words = f"The allowed maximum operations in a JSON patch is {limit}, got {found}"
    return ApiError(413, "RequestEntityTooLarge", words)


def unexpected(words: str) -> ApiError:
    """What Kubernetes did not foresee as the user's fault."""
    return ApiError(500, "", words)


def no_merge_key(item: Any, key: str) -> ApiError:
    return unexpected(f"map: {go_text(item)} does not contain declared merge key: {key}")


def unknown_directive(directive: Any, patch: Any) -> ApiError:
    return unexpected(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")


def bad_directive(name: str) -> ApiError:
    return bad_request(f"invalid patch format of {name}")


def lists_of_lists() -> ApiError:
    return does_not_apply()


_FIRST_WITH_EXPONENT = 1e21


def go_type(value: Any) -> str:
    """As Go names the type of a decoded JSON value."""
    if isinstance(value, bool):
        return "bool"
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", int: "int64", float: "float64"}
    return names.get(type(value), "%!s(<nil>)")


def go_text(value: Any) -> str:
    """As Go prints a value with %v."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_text(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(one) for one in value) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _FIRST_WITH_EXPONENT:
        return str(int(value))
    return str(value)
