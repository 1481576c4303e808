"""What queues of KAI and Volcano have of GPUs, as their authors may write it."""

from __future__ import annotations

import msgspec
import pytest

from shoal.client.item import Item, item_of
from shoal.cost.records import FULL_SHARE
from shoal.store.history.quota_rows import kai_quota, volcano_quota


def queue(spec: dict[str, object]) -> Item:
    return item_of(msgspec.json.encode({"metadata": {"name": "q"}, "spec": spec}))


@pytest.mark.parametrize(
    ("text", "gpus"), [("8", 8), (8, 8), ("8k", 8000), (0.5, 0.5), ("500m", 0.5), ("1e400", 10**400), ("0", 0)]
)
def test_what_a_queue_of_volcano_deserves_is_a_quantity(text: object, gpus: float) -> None:
    found = volcano_quota(queue({"deserved": {"nvidia.com/gpu": text, "cpu": "4"}}))
    assert found == (gpus * FULL_SHARE if isinstance(gpus, int) else int(gpus * FULL_SHARE))


def test_a_queue_of_volcano_that_deserves_no_gpus_says_nothing() -> None:
    assert volcano_quota(queue({"deserved": {"cpu": "4"}})) is None
    assert volcano_quota(queue({})) is None


@pytest.mark.parametrize("text", ["many", "1e99999999", "", "NaN", None, [1]])
def test_a_text_that_is_no_quantity_is_an_error_of_the_object(text: object) -> None:
    with pytest.raises(msgspec.DecodeError):
        volcano_quota(queue({"deserved": {"nvidia.com/gpu": text}}))


@pytest.mark.parametrize(("gpus", "shares"), [(2, 2 * FULL_SHARE), (0.5, FULL_SHARE // 2), (-1, None)])
def test_the_quota_of_a_queue_of_kai_is_in_shares(gpus: float, shares: int | None) -> None:
    assert kai_quota(queue({"resources": {"gpu": {"quota": gpus}}})) == shares


def test_a_quota_of_kai_may_be_as_large_as_a_number() -> None:
    assert kai_quota(queue({"resources": {"gpu": {"quota": 1e308}}})) == int(1e308) * FULL_SHARE
