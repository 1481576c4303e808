"""Reads the parameters of a trigger: written ones, those of its authentication, and variables of the target.

What is wrong is said as KEDA says it, with the parameter and never with a value of the authentication.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.units.durations import DurationError, nanoseconds

_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "TRUE", "true", "True"}),
    frozenset({"0", "f", "F", "FALSE", "false", "False"}),
)
USUAL_TIMEOUT_S = 3.0
LONGEST_TIMEOUT_S = 30.0
"""A server that does not answer must not hold up the other ScaledObjects for long."""
FROM_ENVIRONMENT = "FromEnv"
"""The end of the names of parameters that name an environment variable of the target."""
Parameters = Mapping[str, str]


class TriggerError(ValueError):
    """A trigger is invalid."""


class TriggerMetadata:
    def __init__(self, trigger: Trigger, parameters: Parameters, environment: Mapping[str, str]) -> None:
        """`parameters`: of the authentication; `environment`: of the target's container."""
        self.written = trigger.metadata
        self.parameters = parameters
        self._environment = environment

    def text(self, name: str, usual: str | None = None) -> str:
        found = self.written.get(name, "") or self._environment.get(self.written.get(name + FROM_ENVIRONMENT, ""), "")
        if found:
            return found
        if usual is None:
            raise TriggerError(f'missing required parameter "{name}" in [triggerMetadata]')
        return usual

    def any_text(self, name: str, usual: str | None = None) -> str:
        """Of the authentication, else as it is written."""
        return self.parameters.get(name, "") or self.text(name, usual)

    def secret(self, name: str) -> str:
        found = self.parameters.get(name, "") or self.from_environment(name)
        if not found:
            raise TriggerError(f'missing required parameter "{name}" in [authParams]')
        return found

    def optional_secret(self, name: str) -> str:
        """Credentials that are written in the trigger itself are not read."""
        return self.parameters.get(name, "") or self.from_environment(name)

    def from_environment(self, name: str) -> str:
        return self._environment.get(self.written.get(name + FROM_ENVIRONMENT, ""), "")

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed texts; the first one is usual."""
        found = self.any_text(name, allowed[0])
        if found not in allowed:
            raise TriggerError(f'parameter "{name}" value "{found}" must be one of [{" ".join(allowed)}]')
        return found

    def number(self, name: str, usual: float | None = None) -> float:
        text = self.text(name, "" if usual is not None else None)
        if not text:
            return usual or 0.0
        try:
            found = float(text) if "_" not in text else math.nan
        except ValueError:
            found = math.nan
        if not math.isfinite(found):
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is not a number')
        return found

    def positive(self, name: str, usual: float | None = None) -> float:
        found = self.number(name, usual)
        if found <= 0:
            raise TriggerError(f'unable to set param "{name}" value "{self.text(name, "")}": it is not positive')
        return found

    def flag(self, name: str, *, usual: bool) -> bool:
        text = self.text(name, "")
        if text and text not in _TRUE | _FALSE:
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is neither true nor false')
        return text in _TRUE if text else usual

    def pairs(self, name: str) -> dict[str, str]:
        """`a=b,c=d`."""
        parts = [one.partition("=") for one in self.text(name, "").split(",") if one]
        if any(not mark for _, mark, _ in parts):
            raise TriggerError(f'unable to set param "{name}": write key=value, separated by commas')
        return {key.strip(): value.strip() for key, _, value in parts}

    def seconds(self, name: str) -> float:
        """A Go duration, or milliseconds as a number. At most the longest timeout."""
        text = self.text(name, "")
        if not text:
            return USUAL_TIMEOUT_S
        try:
            found = float(text) / 1000 if text.isdecimal() else nanoseconds(text) / 1e9
        except DurationError as error:
            raise TriggerError(f'unable to set param "{name}" value "{text}": {error}') from None
        if found <= 0:
            raise TriggerError(f'unable to set param "{name}" value "{text}": it is not positive')
        return min(found, LONGEST_TIMEOUT_S)


def host_and_port(address: str) -> tuple[str, int]:
    """`HOST:PORT`. Raises TriggerError."""
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port[:6]) < 65536:
        raise TriggerError(f'"{address}" is not an address: write HOST:PORT')
    return host.strip("[]"), int(port)
