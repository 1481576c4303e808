"""Series in the notation of `promtool test rules`, for evaluations without it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.trees import SeriesSelector

_RUN = re.compile(r"(?P<first>-?[0-9.]+|_)(?:(?P<step>[+-][0-9.]+))?(?:x(?P<times>[0-9]+))?")


def values_of(text: str) -> Iterator[float | None]:
    """`1+2x3` is 1, 3, 5, 7; `_` is no sample."""
    for part in text.split():
        found = _RUN.fullmatch(part)
        assert found is not None, part
        times = int(found["times"] or 0)
        if found["first"] == "_":
            yield from [None] * max(times, 1)
            continue
        first, step = float(found["first"]), float(found["step"] or 0)
        yield from (first + step * at for at in range(times + 1))


def labels_of(series: str) -> tuple[str, dict[str, str]]:
    tree = parsed(series)
    assert isinstance(tree, SeriesSelector)
    return tree.name, {one.name: one.value for one in tree.matchers}
