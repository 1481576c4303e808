"""Turns a pod list into the arrivals of one run at a wanted load, as the FGD evaluation does, from our own seed.

The rules are the paper's: pods sorted by name, then shuffled; if they request less than the load asks for, clones of
uniformly drawn pods follow until the next one would pass the limit; if they request more, uniformly drawn pods leave
until the rest fits. The limit test looks at the request *per GPU*, so a last multi-GPU clone may overshoot; published
numbers contain that, hence so do ours.

Guarantees: same seed and lists, same arrivals, whatever order the rows of the files have; a higher load only appends.

Rejected: scaling the request counts of each class instead of drawing. It is smoother but erases the variance
between seeds that the published error bars show.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.sim.arrivals import Arrivals
from shoal.sim.draws import Draws
from shoal.sim.traces.openb import TraceNode, TracePod
from shoal.units.errors import UserError, Where

MIN_LOAD = 0.01
MAX_LOAD = 10.0
MAX_ARRIVALS = 5_000_000
_BATCH = 4096


def draw_arrivals(pods: Sequence[TracePod], nodes: Sequence[TraceNode], load: float, seed: int) -> Arrivals:
    """Arrivals whose GPU request is `load` times the GPUs of the fleet, and a random order of the nodes."""
    check_load(load)
    limit = load * total_gpu_milli(nodes)
    by_name = np.array(sorted(range(len(pods)), key=lambda row: pods[row].name), dtype=np.int64)
    shuffled = by_name[Draws(seed, "shuffle").permutation(len(pods))]
    request = np.array([pod.requested_milli for pod in pods], dtype=np.int64)
    per_gpu = np.array([pod.gpu_milli for pod in pods], dtype=np.int64)
    requested = int(request.sum())
    if requested < limit:
        clones = _clones(by_name, request, per_gpu, requested, limit, Draws(seed, "clones"))
        rows = np.concatenate([shuffled, clones])
    else:
        rows = _trimmed(shuffled, request, limit, Draws(seed, "trim"))
    if not len(rows):
        raise UserError(f"a load of {load:g} leaves no pods on a fleet this small", fix="ask for a higher load")
    return Arrivals(pod_rows=rows, ranks=Draws(seed, "ranks").permutation(len(nodes)))


def check_load(load: float) -> None:
    """NaN fails the comparison too, which is why it is written this way round."""
    if not MIN_LOAD <= load <= MAX_LOAD:
        raise UserError(f"a load of {load:g} is outside {MIN_LOAD:g} to {MAX_LOAD:g}", where=Where(path="--load"))


def total_gpu_milli(nodes: Sequence[TraceNode]) -> int:
    total = 1000 * sum(node.gpu for node in nodes)
    if not total:
        raise UserError("the fleet has no GPUs, so there is nothing to pack")
    return total


def _clones(
    by_name: NDArray[np.int64],
    request: NDArray[np.int64],
    per_gpu: NDArray[np.int64],
    requested: int,
    limit: float,
    draws: Draws,
) -> NDArray[np.int64]:
    """Uniform draws, appended until one would pass the limit; that draw is dropped and ends the list."""
    if not requested:
        raise UserError("no pod requests a GPU, so no load can be reached")
    expected = (limit - requested) / (requested / len(by_name))
    if expected > MAX_ARRIVALS:
        raise UserError(
            f"this load needs about {expected:,.0f} clones of the pods, more than {MAX_ARRIVALS:,}",
            fix="ask for a lower load",
        )
    parts: list[NDArray[np.int64]] = []
    while True:
        drawn = by_name[draws.below(len(by_name), _BATCH)]
        before = requested + np.concatenate([[0], np.cumsum(request[drawn])])
        passing = np.flatnonzero(before[:-1] + per_gpu[drawn] > limit)
        if len(passing):
            parts.append(drawn[: passing[0]])
            return np.concatenate(parts)
        parts.append(drawn)
        requested = int(before[-1])


def _trimmed(shuffled: NDArray[np.int64], request: NDArray[np.int64], limit: float, draws: Draws) -> NDArray[np.int64]:
    """Removing uniformly drawn survivors one by one is removing a prefix of one random permutation."""
    leaving = draws.permutation(len(shuffled))
    left = int(request.sum()) - np.concatenate([[0], np.cumsum(request[shuffled[leaving]])])
    removed = int(np.argmax(left <= limit))
    stays = np.ones(len(shuffled), dtype=bool)
    stays[leaving[:removed]] = False
    return shuffled[stays]
