"""When the work of a workload was last saved, as the annotation for pods tells it on whatever stands for the work."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shoal.engine.from_api.saving import CHECKPOINT_ANNOTATION
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
