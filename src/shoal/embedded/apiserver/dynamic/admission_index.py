"""The configured admission of each subresource and operation, kept until the configuration or the resources change.

A cluster has dozens of policies, of which one or none looks at what is written ten thousand times. The entries here
may still not match a write by its labels, name or scope; all others cannot match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from shoal.embedded.apiserver.calls import Call, Operation
from shoal.embedded.apiserver.dynamic.rules import Matcher
from shoal.embedded.apiserver.resource import Resource


class Configured(Protocol):
    @property
    def rules(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def match_policy(self) -> str: ...


One = TypeVar("One", bound=Configured)


class AdmissionIndex(Generic[One]):
    """All webhooks or policies of a kind, by the doors that they are for."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._all: Sequence[One] = ()
        self._found: dict[tuple[Resource, str, Operation], Sequence[One]] = {}
        self._stamp = -1

    def set(self, configured: Sequence[One]) -> None:
        self._all = configured
        self._found.clear()

    def of(self, call: Call, operation: Operation) -> Sequence[One]:
        """In their order."""
        if not self._all:
            return ()
        if self._stamp != self._matcher.stamp:
            self._stamp = self._matcher.stamp
            self._found.clear()
        key = call.resource, call.subresource, operation
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = [one for one in self._all if self._may_concern(one, call, operation)]
        return found

    def _may_concern(self, one: One, call: Call, operation: Operation) -> bool:
        return self._matcher.may_concern(one.rules, one.match_policy, call, operation)
