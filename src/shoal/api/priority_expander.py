"""Reads the ConfigMap of Cluster Autoscaler's priority expander: a whole number to a list of regular expressions.

Of a number that is written twice the last list counts, as for Cluster Autoscaler; so this is not read by the reader of
manifests, which refuses a key that is given twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import yaml

from shoal.api.yaml_text import LOADER
from shoal.units.errors import UserError, excerpt, one_line
from shoal.units.linear_patterns import LinearPattern, PatternError, compile_linear

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
KEY: Final = "priorities"

_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")

Priorities = Mapping[int, tuple[LinearPattern, ...]]


def priorities_of(text: str) -> Priorities:
    """The patterns of group names by priority; raises UserError for a text without usable priorities."""
    try:
        raw = yaml.load(text, Loader=LOADER)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"priorities are not YAML: {one_line(str(error))}") from error
    if not isinstance(raw, dict) or not raw:
        raise UserError("priorities are empty", fix="write a whole number with a list of regular expressions")
    found: dict[int, tuple[LinearPattern, ...]] = {}
    for key, patterns in raw.items():
        priority = _priority(key)
        if patterns is not None and not isinstance(patterns, list):
            raise UserError(f"priority {priority} needs a list of regular expressions")
        found[priority] = tuple(_compiled(priority, _pattern(priority, each)) for each in patterns or ())
    return found


def _priority(key: object) -> int:
    """A number in quotes is one, as for Cluster Autoscaler."""
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    if isinstance(key, str) and _NUMBER.fullmatch(key):
        return int(key)
    raise UserError(f"priority {excerpt(str(key))} is not a whole number")


def _pattern(priority: int, value: object) -> str:
    """Numbers and words that YAML does not read as text are the text that was written, as for Cluster Autoscaler."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise UserError(f"priority {priority} needs a list of regular expressions")


def _compiled(priority: int, text: str) -> LinearPattern:
    try:
        return compile_linear(text)
    except PatternError as error:
        raise UserError(f"priority {priority}: {excerpt(text)} is not a regular expression: {error}") from error
