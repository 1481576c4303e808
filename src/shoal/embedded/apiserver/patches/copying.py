"""Copies of JSON values."""

from __future__ import annotations

from typing import Any


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(below) if isinstance(below, dict | list) else below for key, below in value.items()}
    if isinstance(value, list):
        return [copied(below) if isinstance(below, dict | list) else below for below in value]
    return value
