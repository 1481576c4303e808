"""`--set` and `--set-string` as helm reads them: each row is a text and what it makes of the values."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.install.values.set_text import apply_set
from shoal.units.errors import UserError


def _set(text: str, *, is_text: bool = False, values: dict[str, Any] | None = None) -> dict[str, Any]:
    found = values if values is not None else {}
    apply_set(found, text, is_text=is_text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("driver.enabled=false", {"driver": {"enabled": False}}),
        ("a=1,b.c=x", {"a": 1, "b": {"c": "x"}}),
        ("a=TRUE", {"a": True}),
        ("a=null", {"a": None}),
        ("a=007", {"a": "007"}),
        ("a=0", {"a": 0}),
        ("a=-5", {"a": -5}),
        ("a=1.5", {"a": "1.5"}),
        ("a=99999999999999999999", {"a": "99999999999999999999"}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        (r"a=x\,y", {"a": "x,y"}),
        (r"nodeSelector.kubernetes\.io/os=linux", {"nodeSelector": {"kubernetes.io/os": "linux"}}),
        ("a={x,1,true}", {"a": ["x", 1, True]}),
        ("a={}", {"a": []}),
        ("a={x,},b=1", {"a": ["x", ""], "b": 1}),
        ("a[0].key=gpu", {"a": [{"key": "gpu"}]}),
        ("a[1]=x", {"a": [None, "x"]}),
        ("a[0][1]=x", {"a": [[None, "x"]]}),
        ("a[0].b=1,a[0].c=2,a[1].b=3", {"a": [{"b": 1, "c": 2}, {"b": 3}]}),
        ("", {}),
    ],
)
def test_set(text: str, expected: dict[str, Any]) -> None:
    assert _set(text) == expected


def test_with_set_string_a_number_is_text() -> None:
    assert _set("env[0].value=true,n=1,l={1}", is_text=True) == {"env": [{"value": "true"}], "n": "1", "l": ["1"]}


def test_a_later_pair_changes_what_an_earlier_one_made() -> None:
    values = _set("a.b=1,a.c=2")
    assert _set("a.b=3", values=values) == {"a": {"b": 3, "c": 2}}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("driver", 'key "driver" has no value'),
        ("driver,a=1", 'key "driver" has no value'),
        ("a=1,driver.enabled", 'key "enabled" has no value'),
        ("a..b=1", "a name is empty"),
        ("=1", "a name is empty"),
        ("a[x]=1", "not an index"),
        ("a[-1]=1", "not an index"),
        ("a[0]", "ends without a value"),
        ("a[0]x=1", "ends without a value"),
        ("a={x", "the list does not end"),
        ("a={x}y", "text follows the list"),
        ("a[99999]=1", "too large"),
        ("a=1,a.b=2", "no parts"),
        (".".join("a" * 40) + "=1", "more than 30 names"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(UserError, match="--set") as caught:
        _set(text)
    assert words in str(caught.value)


def test_indexes_of_one_option_make_a_bounded_number_of_elements() -> None:
    with pytest.raises(UserError, match="too large"):
        _set(",".join(f"a{number}[900]=1" for number in range(10)))
