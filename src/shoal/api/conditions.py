"""Conditions in the status of an object: one type for every kind, and the two questions that readers ask."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.wire import ApiStruct, Timestamp


class Condition(ApiStruct, frozen=True):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Timestamp | None = None

    def is_true(self) -> bool:
        return self.status == "True"


def find_condition(conditions: Iterable[Condition], name: str) -> Condition | None:
    """The condition of that type, if there is one."""
    return next((one for one in conditions if one.type == name), None)


def is_condition_true(conditions: Iterable[Condition], name: str) -> bool:
    found = find_condition(conditions, name)
    return found is not None and found.is_true()
