"""Determines how much work a pod would lose by being stopped: its last checkpoint, or its checkpoint interval.

A program that reports writes the moment down; one that does not may say how often it saves, and is then believed: the
last save is the last whole multiple since its start. Without either, everything since the start is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shoal.api.checkpoint_annotations import CHECKPOINT_ANNOTATION, CHECKPOINT_EVERY_ANNOTATION
from shoal.units.durations import WITH_DAYS, DurationError, nanoseconds
from shoal.units.errors import UserError, Where, excerpt


def saved_s(annotations: Mapping[str, str], where: Where) -> float | None:
    """`where` is the place of the annotations."""
    text = annotations.get(CHECKPOINT_ANNOTATION)
    if text is None:
        return None
    here = where.key(CHECKPOINT_ANNOTATION)
    try:
        saved = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"{excerpt(text)} is not a time", where=here, fix="write e.g. 2026-01-31T12:00:00Z") from error
    if saved.tzinfo is None:
        raise UserError(f"{excerpt(text)} has no time zone", where=here, fix="end it with Z or an offset")
    return saved.timestamp()


def saves_every_s(annotations: Mapping[str, str], where: Where) -> float:
    """Zero: it does not say."""
    text = annotations.get(CHECKPOINT_EVERY_ANNOTATION)
    if text is None:
        return 0.0
    try:
        seconds = nanoseconds(text, WITH_DAYS) / 10**9
    except DurationError:
        seconds = 0.0
    if seconds <= 0:
        here = where.key(CHECKPOINT_EVERY_ANNOTATION)
        raise UserError(f"{excerpt(text)} is not a time span", where=here, fix="write e.g. 10m or 1h30m")
    return seconds
