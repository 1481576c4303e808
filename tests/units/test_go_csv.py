"""Comma-separated values are read as Go reads them, and refused with its messages."""

from __future__ import annotations

import pytest

from shoal.units.go_csv import CsvError, records


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a,b\nc,d\n", [["a", "b"], ["c", "d"]]),
        ("a,b\nc,d", [["a", "b"], ["c", "d"]]),
        ("a,b\r\nc,d\r\n", [["a", "b"], ["c", "d"]]),
        ("a,b\r", [["a", "b"]]),
        ("# a\n\n\na,b\n#c\n", [["a", "b"]]),
        (" # a,b\n", [[" # a", "b"]]),
        ("a, b ,\n", [["a", " b ", ""]]),
        ('a,"b, c"\n', [["a", "b, c"]]),
        ('a,"say ""b"""\n', [["a", 'say "b"']]),
        ('a,"b\nc"\nd,e\n', [["a", "b\nc"], ["d", "e"]]),
        ('"",a\n', [["", "a"]]),
        ("  \n", [["  "]]),
    ],
)
def test_records_are_read(text: str, expected: list[list[str]]) -> None:
    assert records(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\nc\n", "record on line 2: wrong number of fields"),
        ("a\n# one\n\nb,c\n", "record on line 4: wrong number of fields"),
        ('a,b"c\n', 'parse error on line 1, column 4: bare " in non-quoted field'),
        ('a, "b"\n', 'parse error on line 1, column 4: bare " in non-quoted field'),
        ('é, "b"\n', 'parse error on line 1, column 5: bare " in non-quoted field'),
        ('a,"b"c\n', 'parse error on line 1, column 5: extraneous or missing " in quoted-field'),
        ('a,"b\nc\n', 'record on line 1; parse error on line 2, column 2: extraneous or missing " in quoted-field'),
    ],
)
def test_wrong_records_are_refused_with_their_line(text: str, words: str) -> None:
    with pytest.raises(CsvError) as refused:
        records(text)
    assert str(refused.value) == words
