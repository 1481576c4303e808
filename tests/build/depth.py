"""How many examples and seeds tests try: enough to notice most slips on every change, more where somebody asks.

`SHOAL_DEEP=10 make test` tries ten times as many. What a search of hours found is told in a test of its own, so usual
runs do not search for it again. Rejected: a profile of Hypothesis, which a number in the test itself overrules.
"""

from __future__ import annotations

import os

_TIMES = int(os.environ.get("SHOAL_DEEP", "1"))


def examples(usual: int) -> int:
    return usual * _TIMES


def seeds(usual: int) -> range:
    return range(usual * _TIMES)


def is_deep() -> bool:
    return _TIMES > 1
