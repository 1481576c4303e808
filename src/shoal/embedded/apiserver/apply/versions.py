"""The two objects of a write in the versions in which managers own fields.

A manager's paths mean something only in the version he wrote in. What converts between versions of a resource is
handed in as `Elsewhere`; without it all versions are taken to name their fields alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.embedded.apiserver.apply.changes import Changes, changes
from shoal.embedded.apiserver.apply.fieldset import Fields, difference
from shoal.embedded.apiserver.schema.node import Schema

Obj = dict[str, Any]
Elsewhere = Callable[[Obj, str], tuple[Obj, Schema] | None]
"""An object of this request's version in another apiVersion, with that version's shape; None when it is not served."""


class Versions:
    """One resource in the version of the request (`api_version`) and, where needed, in others."""

    def __init__(self, api_version: str, schema: Schema, elsewhere: Elsewhere | None, reset: Fields) -> None:
        self.api_version = api_version
        self.schema = schema
        self._elsewhere = elsewhere
        self._reset = reset

    def at(self, obj: Obj, api_version: str) -> tuple[Obj, Schema] | None:
        if api_version == self.api_version or self._elsewhere is None:
            return obj, self.schema
        return self._elsewhere(obj, api_version)

    def back(self, obj: Obj) -> Obj:
        """An object of any version in that of the request."""
        if self._elsewhere is None or obj.get("apiVersion") == self.api_version:
            return obj
        found = self._elsewhere(obj, self.api_version)
        return obj if found is None else found[0]

    def changes(self, old: Obj, new: Obj, api_version: str) -> Changes | None:
        """What the write changes as the version has it, but for what the strategy resets anyway."""
        before, after = self.at(old, api_version), self.at(new, api_version)
        if before is None or after is None:
            return None
        found = changes(before[0], after[0], after[1])
        if not self._reset:
            return found
        touched, removed = (
            difference(each, self._reset, with_children=True) for each in (found.touched, found.removed)
        )
        return Changes(touched, removed)

    def is_same(self, api_version: str) -> bool:
        """Whether nothing has to be converted for a manager of that version."""
        return api_version == self.api_version or self._elsewhere is None
