"""An object in the hands of several managers: `Explanation(schema)` applies and updates, and tells who owns what."""

from __future__ import annotations

import copy
from typing import Any

from shoal.embedded.apiserver.apply.applying import Applier, apply
from shoal.embedded.apiserver.apply.tracking import keep_times, track
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]


class Explanation:
    """Every step checks that what it was given was not changed. Time is the number of the step."""

    def __init__(self, schema: Schema, api_version: str) -> None:
        self.schema = schema
        self.api_version = api_version
        self.live: Obj | None = None
        self.steps = 0

    def _now(self) -> str:
        self.steps += 1
        return f"2026-11-21T10:00:{self.steps:02d}Z"

    def apply(self, config: Obj, manager: str, *, force: bool = False, **how: Any) -> Obj:
        before = copy.deepcopy((self.live, config))
        applier = Applier(manager, how.pop("api_version", self.api_version), self.schema, force, **how)
        found = apply(self.live, config, applier, now=self._now())
        assert (self.live, config) == before
        return self._stored(found)

    def write(self, obj: Obj, manager: str, **how: Any) -> Obj:
        """A create, the first time, or else an update."""
        new = copy.deepcopy(obj)
        before = copy.deepcopy(self.live)
        api_version = how.pop("api_version", self.api_version)
        track(new, self.live, manager=manager, api_version=api_version, now=self._now(), schema=self.schema, **how)
        assert self.live == before
        return self._stored(new)

    def edit(self, manager: str, **spec: Any) -> Obj:
        """An update that sets fields of the spec; None takes one away."""
        new = copy.deepcopy(self.live) or {}
        wanted = {**new.get("spec", {}), **spec}
        new["spec"] = {key: value for key, value in wanted.items() if value is not None}
        return self.write(new, manager)

    def _stored(self, new: Obj) -> Obj:
        new["metadata"].setdefault("uid", "1234")
        old = self.live
        if old is None or not keep_times(new, old):
            new["metadata"]["resourceVersion"] = str(self.steps)
        else:
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        self.live = new
        return new

    @property
    def spec(self) -> Any:
        return (self.live or {}).get("spec")

    @property
    def entries(self) -> list[Obj]:
        found: list[Obj] = (self.live or {})["metadata"].get("managedFields", [])
        return found

    def entry(self, manager: str, operation: str = "", subresource: str = "") -> Obj:
        (found,) = [
            one
            for one in self.entries
            if one.get("manager") == manager
            and (not operation or one["operation"] == operation)
            and one.get("subresource", "") == subresource
        ]
        return found

    def owned(self, manager: str, operation: str = "") -> Any:
        """What a manager owns below spec."""
        return self.entry(manager, operation)["fieldsV1"].get("f:spec")

    def managers(self) -> list[str]:
        return [one["manager"] for one in self.entries]
