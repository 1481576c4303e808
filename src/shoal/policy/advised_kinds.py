"""The kinds whose objects are checked, each with its checks: what the advisor follows and `shoal lint` applies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from shoal.policy.catalogue import checks
from shoal.policy.declarations import Check
from shoal.policy.kinds import (
    CONFIG_MAP,
    LOCAL_QUEUE,
    NAMESPACE,
    NODE,
    POD,
    PRIORITY_CLASS,
    TASK,
    VOLUME_CLAIM,
    GroupKind,
)

LOOKUP_KINDS: Final[tuple[GroupKind, ...]] = (NODE, NAMESPACE, PRIORITY_CLASS, VOLUME_CLAIM, TASK, LOCAL_QUEUE)
"""Kinds that checks look up, beside those of the table."""
_NUMEROUS: Final = (POD, CONFIG_MAP)


class AdvisedKind(msgspec.Struct, frozen=True):
    kind: GroupKind
    checks: tuple[Check, ...]
    hints: tuple[bytes, ...] = ()
    """Objects without any of these words are never decoded."""
    is_partial: bool = False
    """Objects without any of the words are not even kept: they may be large."""
    is_rechecked: bool = False

    def is_judged(self, data: bytes) -> bool:
        """Whether a check could have advice for the object with these bytes."""
        return not self.hints or any(word in data for word in self.hints)


@cache
def advised_kinds() -> tuple[AdvisedKind, ...]:
    """Pods first, then by group and name."""
    found: dict[GroupKind, list[Check]] = {}
    for each in checks():
        for kind in each.kinds:
            found.setdefault(kind, []).append(each)
    return tuple(_row(kind, tuple(found[kind])) for kind in sorted(found, key=lambda kind: (kind != POD, kind)))


def _row(kind: GroupKind, of_kind: tuple[Check, ...]) -> AdvisedKind:
    # A check without words may have advice for every object.
    is_hinted = kind in _NUMEROUS and all(each.hints for each in of_kind)
    hints = tuple(dict.fromkeys(word for each in of_kind for word in each.hints)) if is_hinted else ()
    is_rechecked = any(each.is_rechecked for each in of_kind)
    return AdvisedKind(kind, of_kind, hints, kind == CONFIG_MAP and is_hinted, is_rechecked)


def checks_of(kind: GroupKind) -> tuple[Check, ...]:
    row = by_kind().get(kind)
    return () if row is None else row.checks


@cache
def by_kind() -> Mapping[GroupKind, AdvisedKind]:
    return {row.kind: row for row in advised_kinds()}


@cache
def file_checks() -> tuple[Check, ...]:
    """For objects of any kind that no server has accepted yet."""
    return tuple(each for each in checks() if each.in_files)
