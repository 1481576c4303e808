"""The start of a cluster of `shoal.testing` and of its namespaces, each beside its bar.

python -m bench.testing [--quick]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from statistics import median
from time import perf_counter

from rich.console import Console

from bench.cluster.figures import Figure, table
from shoal.testing import KubeCluster, KubeClusterOptions

_NAMESPACES = 20


def measure(starts: int) -> list[Figure]:
    """The medians of several clusters; the first namespace of a cluster also opens connections."""
    start_s, first_ms, other_ms = [], [], []
    for _ in range(starts):
        begun = perf_counter()
        with KubeCluster(KubeClusterOptions()) as cluster:
            start_s.append(perf_counter() - begun)
            first_ms.append(_namespace_ms(cluster))
            other_ms += [_namespace_ms(cluster) for _ in range(_NAMESPACES)]
    return [
        Figure(
            "cluster with two nodes", median(start_s), " s", most=3, beside=f"slowest of {starts} {max(start_s):.2f} s"
        ),
        Figure("first namespace", median(first_ms), " ms", most=50, beside=f"slowest {max(first_ms):.0f} ms"),
        Figure("further namespaces", median(other_ms), " ms", most=50, beside=f"slowest {max(other_ms):.0f} ms"),
    ]


def _namespace_ms(cluster: KubeCluster) -> float:
    begun = perf_counter()
    cluster.namespace()
    return (perf_counter() - begun) * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one cluster")
    chosen = parser.parse_args(arguments)
    Console(highlight=False).print(table(measure(1 if chosen.quick else 5)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
