"""How decisions of node components are judged: decided from a copy without the expectation, then compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

import msgspec

from shoal.devices.plugin_resources import Refusal

from ..result import Result

Raw = dict[str, Any]


class Refused(msgspec.Struct, frozen=True):
    """What our code refuses: the reason, in its own name, and the message."""

    reason: str
    message: str


Answer = Any
"""What is decided, or `Refused`."""

CLASSES: Mapping[str, str] = {
    "imex": "imex-channels",
    "imex-channel-ids": "imex-channels",
    "missing-resources": "no-resources",
    "mps-with-mig-mixed": "mps-with-mixed",
    "name": "resource-name",
    "unknown-strategy": "mig-strategy",
}
"""Other names for our reasons."""
_ALIKE = (
    {"missing-name", "resource-name"},
    {"missing-replicas", "replicas", "replicas-too-few", "replicas-too-many"},
    {"mps-with-mig", "mps-with-mixed"},
)
"""Reasons between which a restated class need not distinguish."""
_FORM = {"syntax", "type"}
"""A value in a wrong form is refused before its meaning is known."""
_KNOWN = {
    *get_args(Refusal),
    "driver-version",
    "mig-and-full-gpus",
    "mig-gpu-without-instances",
    "more-than-one-profile",
    "more-than-one-shared",
    "mps-with-mig",
    "no-resource-for-profile",
    "unknown-device",
}


def verdict(
    raw: Raw, family: str, decide: Callable[[Raw], Answer], compare: Callable[[Answer, Raw], list[str]]
) -> list[Result]:
    name, expect = str(raw.get("id", "")), raw.get("expect") or {}
    answer = decide({key: value for key, value in raw.items() if key != "expect"})
    refused = expect.get("refused")
    if isinstance(refused, dict):
        diff, notes = _refusal(answer, refused)
    elif isinstance(answer, Refused):
        diff, notes = [f"refused: {answer.message}"], []
    else:
        diff, notes = compare(answer, expect), []
    return [Result(name, family, "fail" if diff else "pass", 0 if diff else 2, diff, notes=notes)]


def _refusal(answer: Answer, refused: Raw) -> tuple[list[str], list[str]]:
    """A reason that is not one of ours cannot be compared. Words are a wish."""
    wanted = str(refused.get("class", ""))
    if not isinstance(answer, Refused):
        return [f"expected a refusal ({wanted}), got {answer}"], []
    reason = CLASSES.get(wanted, wanted)
    is_alike = answer.reason in _FORM or any({reason, answer.reason} <= group for group in _ALIKE)
    if reason in _KNOWN and answer.reason != reason and not is_alike:
        return [f"refused for {answer.reason}, expected {wanted}: {answer.message}"], []
    notes = [f"{wanted} is refused for {answer.reason}"] if answer.reason != reason else []
    missing = [word for word in refused.get("mentions") or () if str(word) not in answer.message]
    return [], [*notes, *(f"the message does not mention {word}: {answer.message}" for word in missing)]
