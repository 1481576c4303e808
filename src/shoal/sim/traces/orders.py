"""Arrival orders recorded elsewhere, so that a run can be compared with a published one pod by pod.

The file is gzip of little-endian unsigned 16-bit integers. For each seed from 42 on: the number n of arrivals, n pod
rows (0-based, recurring for clones) and one rank per node, nodes in name order.

Guarantees: what comes out indexes the given pods and nodes, and the ranks are a permutation; an order made for other
lists is refused, not misread. The bytes held are bounded, whatever the compressed file claims.

Rejected: a generator of Go's `math/rand` stream to recompute these orders. It would be a second implementation of a
foreign generator to maintain; the integers are the fact.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.sim.arrivals import Arrivals
from shoal.sim.traces.openb import TraceNode, TracePod
from shoal.units.errors import UserError, Where

FIRST_SEED = 42
MAX_UNPACKED_BYTES = 32 * 1024 * 1024
_HINT = "was it made for other node and pod lists?"


def read_order(path: Path, seed: int, pods: Sequence[TracePod], nodes: Sequence[TraceNode]) -> Arrivals:
    """The block of this seed."""
    where = Where(file=str(path))
    numbers = _load_numbers(path, where)
    blocks = _blocks(numbers, len(nodes), where)
    if not FIRST_SEED <= seed < FIRST_SEED + len(blocks):
        raise UserError(
            f"has no order for seed {seed}", where=where, fix=f"seeds {FIRST_SEED} to {FIRST_SEED + len(blocks) - 1}"
        )
    block = blocks[seed - FIRST_SEED]
    split = len(block) - len(nodes)
    pod_rows, ranks = block[:split], block[split:]
    if len(pod_rows) and int(pod_rows.max()) >= len(pods):
        raise UserError(
            f"the order of seed {seed} names pod row {int(pod_rows.max())}, the pod list has {len(pods)}",
            where=where,
            fix=_HINT,
        )
    if not np.array_equal(np.sort(ranks), np.arange(len(nodes))):
        raise UserError(f"the node ranks of seed {seed} are not an order of {len(nodes)} nodes", where=where, fix=_HINT)
    return Arrivals(pod_rows=pod_rows, ranks=ranks)


def _blocks(numbers: NDArray[np.int64], node_count: int, where: Where) -> list[NDArray[np.int64]]:
    blocks = []
    at = 0
    while at < len(numbers):
        count = int(numbers[at])
        end = at + 1 + count + node_count
        if not count or end > len(numbers):
            raise UserError(f"does not divide into orders for {node_count} nodes", where=where, fix=_HINT)
        blocks.append(numbers[at + 1 : end])
        at = end
    if not blocks:
        raise UserError("holds no order", where=where)
    return blocks


def _load_numbers(path: Path, where: Where) -> NDArray[np.int64]:
    try:
        with gzip.open(path, "rb") as stream:
            data = stream.read(MAX_UNPACKED_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"is not a whole gzip file: {error}", where=where) from error
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=where) from error
    if len(data) > MAX_UNPACKED_BYTES:
        raise UserError(f"unpacks to more than {MAX_UNPACKED_BYTES // 1024 // 1024} MiB", where=where)
    if len(data) % 2:
        raise UserError("holds an odd number of bytes, 16-bit numbers were expected", where=where)
    return np.frombuffer(data, dtype="<u2").astype(np.int64)
