"""Recorded orders: the right block for the seed, and refusal of anything made for other lists."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from shoal.sim.traces.openb import TraceNode, TracePod
from shoal.sim.traces.orders import MAX_UNPACKED_BYTES, read_order
from shoal.units.errors import UserError

NODES = [TraceNode(name, 1, 1, 1, "T4") for name in ("c", "a", "b")]
PODS = [TracePod(f"p{k}", 1, 1, 1, 1000, "") for k in range(4)]
FIRST = [2, 3, 0, *[2, 0, 1]]
SECOND = [5, 1, 1, 2, 3, 1, *[0, 1, 2]]


def order_file(tmp_path: Path, *numbers: int) -> Path:
    path = tmp_path / "order.u16.gz"
    path.write_bytes(gzip.compress(np.array(numbers, dtype="<u2").tobytes()))
    return path


def test_the_first_block_belongs_to_seed_42(tmp_path: Path) -> None:
    order = read_order(order_file(tmp_path, *FIRST, *SECOND), 42, PODS, NODES)
    assert order.pod_rows.tolist() == [3, 0]
    assert order.ranks.tolist() == [2, 0, 1]


def test_blocks_may_differ_in_length_and_repeat_rows(tmp_path: Path) -> None:
    order = read_order(order_file(tmp_path, *FIRST, *SECOND), 43, PODS, NODES)
    assert order.pod_rows.tolist() == [1, 1, 2, 3, 1]
    assert order.ranks.tolist() == [0, 1, 2]


WRONG = {
    "a seed before the first": (41, [*FIRST], "has no order for seed 41; seeds 42 to 42"),
    "a seed after the last": (44, [*FIRST, *SECOND], "has no order for seed 44; seeds 42 to 43"),
    "a pod row the list lacks": (42, [1, 4, 0, 1, 2], "names pod row 4, the pod list has 4"),
    "ranks that repeat": (42, [1, 0, 0, 1, 1], "are not an order of 3 nodes"),
    "ranks out of range": (42, [1, 0, 1, 2, 3], "are not an order of 3 nodes"),
    "a block cut short": (42, FIRST[:-1], "does not divide into orders for 3 nodes"),
    "a tail after the last block": (42, [*FIRST, 9], "does not divide into orders for 3 nodes"),
    "a block without arrivals": (42, [0, 0, 1, 2], "does not divide into orders for 3 nodes"),
    "nothing": (42, [], "holds no order"),
}


@pytest.mark.parametrize(("seed", "numbers", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_an_order_is_refused_for(seed: int, numbers: list[int], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_order(order_file(tmp_path, *numbers), seed, PODS, NODES)
    assert complaint in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path))


BROKEN = {
    "text instead of gzip": (b"name,cpu_milli\n", "is not a whole gzip file"),
    "gzip cut short": (gzip.compress(bytes(1000))[:-9], "is not a whole gzip file"),
    "gzip with a flipped byte": (gzip.compress(bytes(range(256)) * 8)[:40] + b"\xff" * 40, "is not a whole gzip file"),
    "an odd number of bytes": (gzip.compress(b"abc"), "odd number of bytes"),
    "a gzip bomb": (gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)), "unpacks to more than 32 MiB"),
    "an empty file": (b"", "holds no order"),
}


@pytest.mark.parametrize(("content", "complaint"), BROKEN.values(), ids=BROKEN.keys())
def test_an_order_file_is_refused_when_it_is(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "order.u16.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=complaint):
        read_order(path, 42, PODS, NODES)


def test_an_order_file_that_is_not_there_is_the_users_turn(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_order(tmp_path / "none.gz", 42, PODS, NODES)
