"""The names of DCGM's fields, with their numbers: what a selection file of the exporter may name.

Former names are among them, because the exporter still accepts those. Profiling fields have numbers from 1000 to 1099.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from shoal.data.facts import load, require

FILE = "dcgm_fields.json"
_PROFILING = range(1000, 1100)


@cache
def field_numbers() -> Mapping[str, int]:
    found = load(FILE, dict[str, int])
    for name, number in found.items():
        require(name and number >= 0, FILE, name, "a field has a name and a number from 0")
    return found


def is_profiling(number: int) -> bool:
    return number in _PROFILING
