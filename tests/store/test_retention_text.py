"""How long a history keeps what, as a text."""

from __future__ import annotations

import pytest

from shoal.store.history.retention_text import read_retention
from shoal.store.history.samples import DAY_MS, Retention
from shoal.units.errors import UserError, Where

HERE = Where(path="--history-retention")


def test_what_is_named_is_changed_and_the_rest_keeps_its_default() -> None:
    found = read_retention("raw=12h, 5m=30d,size=500M", HERE)
    assert found == Retention(raw_ms=DAY_MS // 2, five_ms=30 * DAY_MS, most_bytes=500_000_000)
    assert read_retention("1h=90d,ledger=400d", HERE) == Retention(hour_ms=90 * DAY_MS, ledger_ms=400 * DAY_MS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no retention"),
        ("10m=1d", "is no retention"),
        ("raw", "is no retention"),
        ("raw=long", "raw: .* is not a time span"),
        ("raw=5m", "is too short"),
        ("raw=1d,raw=2d", "names raw twice"),
        ("size=1k", "is no size"),
        ("size=much", "is no size"),
    ],
)
def test_another_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_retention(text, HERE)
