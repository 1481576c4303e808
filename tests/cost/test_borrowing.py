"""What of a queue's work is borrowed, and the mean over the time of a holding."""

from __future__ import annotations

import pytest

from shoal.cost.borrowing import BorrowedTime, QuotaHolder, borrowed_parts
from shoal.cost.records import PPM


def holder(key: str, since: int, **amounts: int) -> QuotaHolder:
    return QuotaHolder(key, since, amounts)


HALF = PPM // 2
BOTH = holder("a", 1, x=2, y=2)


@pytest.mark.parametrize(
    ("nominal", "holders", "expected"),
    [
        pytest.param({"gpu": 4}, [holder("a", 1, gpu=4)], {"a": 0}, id="within the quota"),
        pytest.param(
            {"gpu": 4}, [holder("a", 2, gpu=4), holder("b", 1, gpu=2)], {"b": 0, "a": PPM // 2}, id="the last"
        ),
        pytest.param({"gpu": 4}, [holder("a", 1, gpu=4), holder("b", 2, gpu=8)], {"a": 0, "b": PPM}, id="all of one"),
        pytest.param({"gpu": 0}, [holder("a", 1, gpu=1)], {"a": PPM}, id="a queue without quota"),
        pytest.param({"x": 2, "y": 2}, [holder("a", 1, x=4, y=4)], {"a": PPM // 2}, id="two flavors"),
        pytest.param(
            {"x": 2, "y": 9},
            [holder("a", 1, x=2, y=2), holder("b", 2, x=2, y=2)],
            {"a": 0, "b": PPM // 2},
            id="one flavor",
        ),
        pytest.param({"gpu": 1}, [holder("a", 1, cpu=64)], {"a": 0}, id="nothing that the quota counts"),
    ],
)
def test_the_work_that_started_last_holds_what_exceeds_the_nominal_quota(
    nominal: dict[str, int], holders: list[QuotaHolder], expected: dict[str, int]
) -> None:
    assert borrowed_parts(nominal, holders) == expected


def test_all_borrowed_parts_together_are_what_the_queue_uses_beyond_its_quota() -> None:
    holders = [holder(f"w{at}", at * 7 % 5, gpu=at + 1) for at in range(6)]
    parts = borrowed_parts({"gpu": 8}, holders)
    borrowed = sum(parts[one.key] * one.amounts["gpu"] for one in holders)
    assert borrowed == pytest.approx((21 - 8) * PPM, abs=len(holders) * 6)


def test_the_part_of_a_holding_is_its_mean_over_time() -> None:
    time = BorrowedTime(start_ms=0, changed_ms=0, ppm=PPM)
    assert time.mean(500) == PPM
    time = time.changed(1000, 0)
    assert time.mean(1000) == PPM
    assert time.mean(4000) == PPM // 4
    assert time.changed(4000, PPM // 2).mean(8000) == (1000 * PPM + 4000 * (PPM // 2)) // 8000


def test_a_clock_that_steps_back_takes_no_time_away() -> None:
    time = BorrowedTime(0, 0, PPM).changed(1000, 0)
    assert time.changed(500, PPM).mean(1000) == PPM
    assert BorrowedTime(10, 10, 7).mean(10) == 7
