"""Encodes samples of many devices over some time as one block: rows of devices, columns of moments.

Values are whole numbers of a step that is fine enough for the metric, a missing value is 0, and differences in time are
compressed: a value takes well below a byte. Rejected: a row for each sample, which takes twenty times the space.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float32]
"""Devices x moments; not a number where nothing was measured."""

METRICS = ("util", "sm", "tensor", "dram", "memory", "power", "temperature", "xid")
"""Utilisation in percent, activities as parts of 1, memory in MiB, watts, degrees Celsius, the last Xid error."""
_STEPS: dict[str, float] = {
    "util": 0.5,
    "sm": 0.005,
    "tensor": 0.005,
    "dram": 0.005,
    "memory": 16,
    "power": 1,
    "temperature": 1,
    "xid": 1,
}
_LEVEL = 1


class Block(NamedTuple):
    devices: NDArray[np.int32]
    """Their numbers, ascending."""
    times_ms: NDArray[np.int64]
    values: Values


class _StoredBlock(msgspec.Struct, array_like=True):
    devices: bytes
    times: bytes
    values: bytes


def encoded(metric: str, block: Block) -> bytes:
    step = _STEPS[metric]
    known = np.nan_to_num(np.clip(block.values / step, 0, 2**30), nan=-1.0)
    whole = np.rint(known).astype(np.int32) + 1
    differences = np.diff(whole, axis=1, prepend=np.zeros((len(whole), 1), np.int32))
    folded = ((differences << 1) ^ (differences >> 31)).astype(np.uint32)
    # The bytes of equal weight stand together: the high ones are nearly all zero.
    planes = np.ascontiguousarray(folded).view(np.uint8).reshape(-1, 4).T.tobytes()
    return msgspec.msgpack.encode(
        _StoredBlock(
            _packed(np.diff(block.devices, prepend=0)),
            _packed(np.diff(block.times_ms, prepend=0)),
            zlib.compress(planes, _LEVEL),
        )
    )


def decoded(metric: str, data: bytes) -> Block:
    stored = msgspec.msgpack.decode(data, type=_StoredBlock)
    devices, times = np.cumsum(_unpacked(stored.devices)), np.cumsum(_unpacked(stored.times))
    planes = np.frombuffer(zlib.decompress(stored.values), np.uint8).reshape(4, -1)
    folded = np.ascontiguousarray(planes.T).view(np.uint32).reshape(len(devices), len(times))
    differences = (folded >> 1).astype(np.int32) ^ -(folded & 1).astype(np.int32)
    whole = np.cumsum(differences, axis=1, dtype=np.int32)
    values = np.where(whole == 0, np.nan, (whole - 1) * np.float64(_STEPS[metric])).astype(np.float32)
    return Block(devices.astype(np.int32), times, values)


def joined(blocks: Sequence[Block]) -> Block:
    """Blocks of one metric, of different times, as one with all their devices."""
    devices = np.unique(np.concatenate([one.devices for one in blocks])) if blocks else np.zeros(0, np.int32)
    times = np.concatenate([one.times_ms for one in blocks]) if blocks else np.zeros(0, np.int64)
    values = np.full((len(devices), len(times)), np.nan, np.float32)
    column = 0
    for one in blocks:
        width = len(one.times_ms)
        values[np.searchsorted(devices, one.devices), column : column + width] = one.values
        column += width
    order = np.argsort(times, kind="stable")
    if np.any(order[1:] < order[:-1]):
        times, values = times[order], values[:, order]
    return Block(devices, times, values)


def means(block: Block, starts_ms: Sequence[int], length_ms: int, *, is_peak: bool = False) -> Block:
    """Means of the intervals (the largest value with `is_peak`); not a number where an interval has no value."""
    edges = np.searchsorted(block.times_ms, np.array([*starts_ms, starts_ms[-1] + length_ms]))
    found = np.full((len(block.devices), len(starts_ms)), np.nan, np.float32)
    for at in range(len(starts_ms)):
        part = block.values[:, edges[at] : edges[at + 1]]
        if part.shape[1]:
            known = ~np.isnan(part)
            counts = known.sum(axis=1)
            filled = np.where(known, part, 0)
            result = filled.max(axis=1) if is_peak else filled.sum(axis=1) / np.maximum(counts, 1)
            found[:, at] = np.where(counts > 0, result, np.nan)
    return Block(block.devices, np.array(starts_ms, np.int64), found)


def _packed(numbers: NDArray[np.int64] | NDArray[np.int32]) -> bytes:
    return zlib.compress(numbers.astype("<i8").tobytes(), _LEVEL)


def _unpacked(data: bytes) -> NDArray[np.int64]:
    return np.frombuffer(zlib.decompress(data), "<i8").astype(np.int64)
