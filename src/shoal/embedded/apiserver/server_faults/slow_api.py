"""Describes the fault of a slow API server: the delay, the affected requests and the duration."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, not_supported, required, wrong_type
from shoal.embedded.apiserver.status import invalid

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_BOUNDS = {"delay_ms": (0, 60_000), "jitter_ms": (0, 60_000), "seconds": (1, 86_400)}
_KIND = "SlowApi"


class SlowApi(msgspec.Struct, frozen=True):
    delay_ms: int
    jitter_ms: int = 0
    """Added on top, somewhere between none of it and all."""
    seconds: int = 60
    """How long it goes on."""
    verbs: tuple[str, ...] = ()
    """None named: all."""

    @property
    def is_none(self) -> bool:
        """Whether it delays nothing, which is how it is ended too."""
        return self.delay_ms + self.jitter_ms == 0

    def delay_s(self, verb: str, draw: float) -> float:
        """How long one request waits; `draw` is between 0 and 1."""
        if self.verbs and verb not in self.verbs:
            return 0.0
        return (self.delay_ms + self.jitter_ms * draw) / 1000


def slow_api(sent: Any) -> SlowApi:
    """What was asked for, checked: ApiError 422 with all that is wrong."""
    if not isinstance(sent, dict):
        raise invalid(_KIND, "", "", [wrong_type("", sent, "must be an object")])
    errors: list[FieldError] = []
    known = (*_BOUNDS, "verbs")
    errors += [not_supported(name, name, known) for name in sent if name not in known]
    if "delay_ms" not in sent:
        errors.append(required("delay_ms", "how many milliseconds each request waits"))
    for name, (least, most) in _BOUNDS.items():
        value = sent.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int):
            errors.append(wrong_type(name, value, "must be an integer"))
        elif not least <= value <= most:
            errors.append(bad_value(name, value, f"must be between {least} and {most}, inclusive"))
    errors += verb_errors(sent.get("verbs", []))
    if errors:
        raise invalid(_KIND, "", "", errors)
    return msgspec.convert(sent, SlowApi)


def verb_errors(verbs: Any) -> list[FieldError]:
    """Errors of a list of verbs in a fault."""
    if not isinstance(verbs, list):
        return [wrong_type("verbs", verbs, "must be a list of verbs")]
    return [not_supported(f"verbs[{index}]", verb, VERBS) for index, verb in enumerate(verbs) if verb not in VERBS]
