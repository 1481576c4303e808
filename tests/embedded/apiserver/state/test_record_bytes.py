"""Records are changed as bytes where that is safe and by decoding where it is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.embedded.apiserver.state.interning import Interned
from shoal.embedded.apiserver.state.record import restamp


@pytest.mark.parametrize(
    "around",
    [
        {},
        {"spec": {"template": {"metadata": {"resourceVersion": "7"}}}},
        {"metadata": {"annotations": {"last": '{"metadata":{"resourceVersion":"7"}}'}}},
        {"metadata": {"managedFields": [{"fieldsV1": {"f:resourceVersion": {}}}]}},
        {"note": '"resourceVersion":"7"'},
    ],
)
def test_another_revision_goes_into_the_metadata_and_nowhere_else(around: dict[str, Any]) -> None:
    obj = {**around, "metadata": {**around.get("metadata", {}), "name": "a", "resourceVersion": "7"}}
    expected = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "1234"}}
    assert msgspec.json.decode(restamp(msgspec.json.encode(obj), 7, 1234)) == expected


def test_equal_labels_become_one_dictionary() -> None:
    interned = Interned()
    first = interned.share({"app": "web", "tier": "x"})
    assert interned.share({"app": "web", "tier": "x"}) is first
    assert interned.share({"app": "web"}) == {"app": "web"}


def test_labels_that_are_all_different_do_not_fill_the_memory() -> None:
    interned = Interned()
    for i in range(40_000):
        assert interned.share({"index": str(i)}) == {"index": str(i)}
    assert len(interned._known) <= 16_384


def test_what_was_shared_does_not_change_with_what_it_was_made_of() -> None:
    interned, mine = Interned(), {"app": "web"}
    shared = interned.share(mine)
    mine["app"] = "other"
    assert shared == {"app": "web"}
