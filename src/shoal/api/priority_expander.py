"""Reads the ConfigMap of Cluster Autoscaler's priority expander: a whole number to a list of regular expressions.

Of a number that is written twice the last list counts, as for Cluster Autoscaler; so this is not read by the reader of
manifests, which refuses a key that is given twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import yaml

from shoal.api.yaml_text import LOADER
from shoal.units.errors import UserError, excerpt, one_line
from shoal.units.linear_patterns import LinearPattern, PatternError, compile_linear

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
KEY: Final = "priorities"

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
    for priority, patterns in raw.items():
        if isinstance(priority, bool) or not isinstance(priority, int):
            raise UserError(f"priority {excerpt(str(priority))} is not a whole number")
        if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
            raise UserError(f"priority {priority} needs a list of regular expressions")
        found[priority] = tuple(_compiled(priority, each) for each in patterns)
    return found


def _compiled(priority: int, text: str) -> LinearPattern:
    try:
        return compile_linear(text)
    except PatternError as error:
        raise UserError(f"priority {priority}: {excerpt(text)} is not a regular expression: {error}") from error
