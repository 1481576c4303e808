"""What came of one case, of whatever family."""

from __future__ import annotations

from typing import Any

import msgspec


class Result(msgspec.Struct):
    id: str
    family: str
    status: str
    level: int = 0
    """The highest level that agrees."""
    diff: list[str] = []
    reason: str = ""
    notes: list[str] = []
    """What differs and decides nothing: words, reasons, figures beside the outcome."""


def said(value: Any) -> Any:
    """Without nulls: they say nothing."""
    if isinstance(value, dict):
        return {key: said(each) for key, each in value.items() if each is not None}
    return [said(each) for each in value if each is not None] if isinstance(value, list) else value
