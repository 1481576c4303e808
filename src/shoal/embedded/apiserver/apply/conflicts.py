"""Finds fields that an applier sets and other managers own, and reports the conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from shoal.embedded.apiserver.apply.entries import Manager
from shoal.embedded.apiserver.apply.fieldset import Fields, Path, path_text, paths
from shoal.embedded.apiserver.status import ApiError, Cause, apply_conflict


class Conflict(NamedTuple):
    manager: Manager
    api_version: str
    path: Path


class ConflictError(Exception):
    """An unforced apply met fields of others."""

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        super().__init__("conflicts")
        self.conflicts = conflicts


def listed(owned: Mapping[Manager, tuple[str, Fields]]) -> list[Conflict]:
    """All conflicts, by manager and then by path."""
    return [
        Conflict(manager, owned[manager][0], path)
        for manager in sorted(owned, key=Manager.rank)
        for path in paths(owned[manager][1])
    ]


def refusal(conflicts: Sequence[Conflict]) -> ApiError:
    causes = [Cause("FieldManagerConflict", f"conflict with {_shown(one)}", path_text(one.path)) for one in conflicts]
    return apply_conflict(_message(conflicts), causes)


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_shown(only)}: {path_text(only.path)}"
    lines: list[str] = []
    before: Manager | None = None
    for one in conflicts:
        if one.manager != before:
            lines.append(f"conflicts with {_shown(one)}:")
            before = one.manager
        lines.append(f"- {path_text(one.path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _shown(one: Conflict) -> str:
    words = msgspec.json.encode(one.manager.name).decode()
    if one.manager.subresource:
        words += f" with subresource {msgspec.json.encode(one.manager.subresource).decode()}"
    if one.manager.operation == "Update":
        words += f" using {one.manager.api_version}"
    return words
