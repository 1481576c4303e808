"""Judges the output of `all_reduce_perf` of nccl-tests: whether results were right, and the bandwidth.

The bus bandwidth of the largest message counts: small messages measure latency. The average that the program prints is
over all sizes, so it is shown and not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.policy.readiness.outcomes import Outcome, failed, not_run, passed

_COLUMNS = 13
"""Size, count, type, operation, root; then time, both bandwidths and errors, out of place and in place."""
_AVERAGE, _WRONG = "# Avg bus bandwidth", "# Out of bounds values"
_MOST_LINES = 100_000


class AllReduceRow(msgspec.Struct, frozen=True):
    size_bytes: int
    bus_gb_s: float
    """The better one of out of place and in place."""


def all_reduce_outcome(log: str, least_gb_s: float, where: str) -> Outcome:
    """`least_gb_s`: the bar of the bus bandwidth; 0: there is none. `where`: the node and the number of GPUs."""
    lines = log.splitlines()[:_MOST_LINES]
    rows = list(_rows(lines))
    if not rows:
        last = next((line.strip() for line in reversed(lines) if line.strip()), "the log is empty")
        return not_run(f"{where}: the log has no results of all_reduce_perf; its last line: {last[:200]}")
    largest = max(rows, key=lambda row: row.size_bytes)
    told = [f"{where}: {largest.bus_gb_s:.1f} GB/s bus bandwidth at {largest.size_bytes / 2**20:,.0f} MiB"]
    told += [line.strip("# ").strip() for line in lines if line.startswith((_AVERAGE, _WRONG))]
    wrong = next((line for line in lines if line.startswith(_WRONG)), "")
    if "FAILED" in wrong:
        fix = "results are wrong: look for Xid and ECC errors of the GPUs, and test each GPU alone"
        return failed(told, fix, "shoal doctor cluster", "dcgmi diag -r 3")
    if least_gb_s and largest.bus_gb_s < least_gb_s:
        fix = (
            f"the bar is {least_gb_s:g} GB/s; NCCL_DEBUG=INFO shows the transport that NCCL uses; check NVLink and the "
            "network cards"
        )
        return failed(told, fix, "nvidia-smi topo -m", "nvidia-smi nvlink --status")
    return passed(*told)


def _rows(lines: list[str]) -> Iterator[AllReduceRow]:
    for line in lines:
        words = line.split()
        if len(words) != _COLUMNS or not words[0].isdecimal():
            continue
        try:
            yield AllReduceRow(int(words[0]), max(float(words[7]), float(words[11])))
        except ValueError:
            continue
