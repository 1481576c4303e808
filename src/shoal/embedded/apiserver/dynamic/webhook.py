"""The webhooks that are configured, in the order in which they are called: by the names of their configurations.

Read anew when a configuration changes, and only then; match conditions are compiled when it says something else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from shoal.embedded.apiserver.admission_expressions import AUTHORIZER, BASE
from shoal.embedded.apiserver.dynamic.conditions import Conditions
from shoal.embedded.apiserver.dynamic.kept import Kept, name_of
from shoal.embedded.apiserver.dynamic.rules import GROUP
from shoal.embedded.apiserver.reading import Reader

Plural = Literal["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
_SECONDS = 10
_VISIBLE = {**{name: kind for name, kind in BASE.items() if name != "namespaceObject"}, "authorizer": AUTHORIZER}


class Webhook(msgspec.Struct, frozen=True, eq=False):
    """One webhook of one configuration; what it left out is filled in."""

    name: str
    key: str
    """Unlike its name, its own among all."""
    client: Mapping[str, Any]
    rules: Sequence[Mapping[str, Any]]
    conditions: Conditions
    selecting: Mapping[str, Any]
    """Has namespaceSelector and objectSelector."""
    match_policy: str
    """Exact or Equivalent."""
    is_ignored: bool
    """Whether a failure to ask it does not matter."""
    side_effects: str
    timeout_s: float
    review_version: str
    is_reinvoked: bool


class Configured:
    """All webhooks of a kind."""

    def __init__(self, reader: Reader, plural: Plural) -> None:
        self._reader = reader
        self._plural = plural
        self._kept = Kept(_webhooks)

    def read(self) -> list[Webhook]:
        return [one for made in self._kept.of(self._reader.all(GROUP, self._plural)) for one in made]


def _webhooks(configuration: Mapping[str, Any]) -> list[Webhook]:
    name = name_of(configuration)
    written = enumerate(configuration.get("webhooks") or ())
    return [_webhook(one, f"{name}/{one.get('name', '')}/{place}") for place, one in written]


def _webhook(written: Mapping[str, Any], key: str) -> Webhook:
    versions = written.get("admissionReviewVersions") or ("v1",)
    return Webhook(
        written.get("name", ""),
        key,
        written.get("clientConfig") or {},
        written.get("rules") or (),
        conditions_of(written),
        written,
        written.get("matchPolicy") or "Equivalent",
        written.get("failurePolicy") == "Ignore",
        written.get("sideEffects") or "",
        float(written.get("timeoutSeconds") or _SECONDS),
        next((one for one in versions if one in ("v1", "v1beta1")), "v1"),
        written.get("reinvocationPolicy") == "IfNeeded",
    )


def conditions_of(written: Mapping[str, Any]) -> Conditions:
    return Conditions(written.get("matchConditions") or (), _VISIBLE)
