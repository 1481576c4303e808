"""A synthetic fleet and work for it, for users without a trace.

Plausible rather than measured: five GPU models with unequal CPU per GPU, requests from a tenth of a GPU to eight,
a few pods pinned to models. Two things make packing matter, as in real fleets: requests reach 98 % of the GPUs
before any clone is added, and some pods ask for much CPU per GPU, so that a careless choice strands GPUs.

Guarantees: same size and seed, same fleet and pods. Every pod fits some empty node of the fleet.

Rejected: sampling the published trace. It would bring its licence and its undisclosed models into the package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from shoal.sim.draws import Draws
from shoal.sim.traces.openb import WHOLE_GPU_MILLI, TraceNode, TracePod
from shoal.units.errors import UserError

_T = TypeVar("_T")

MIN_NODES = 5
MAX_NODES = 20_000
DEMAND = 0.98


class _MachineKind(NamedTuple):
    model: str
    gpus: int
    vcpus: int
    memory_gib: int
    share: float


_KINDS = (
    _MachineKind("H100", 8, 192, 2048, 0.15),
    _MachineKind("A100", 8, 96, 1024, 0.20),
    _MachineKind("L40S", 4, 64, 768, 0.25),
    _MachineKind("A10", 4, 48, 384, 0.20),
    _MachineKind("T4", 2, 32, 128, 0.20),
)


class _Ask(NamedTuple):
    """One kind of request: how common it is, and the values its pods draw from, each as likely as the next."""

    weight: float
    num_gpu: int
    gpu_milli: tuple[int, ...]
    vcpus: tuple[int, ...]
    gib_per_vcpu: tuple[int, ...]
    specs: tuple[str, ...]


_ANY = ("",)
_ASKS = (
    # services and preprocessing without a GPU
    _Ask(0.140, 0, (0,), (2, 4, 8, 8, 16), (2, 4, 8), _ANY),
    # notebooks and small models that share a GPU
    _Ask(0.160, 1, (150, 200, 250, 300, 350), (1, 2, 2, 4, 8), (4, 8), _ANY),
    _Ask(0.220, 1, (400, 450, 500, 600, 650, 700, 800), (4, 6, 8, 12, 16), (4, 8), _ANY),
    # inference on one GPU, some of it built for one model
    _Ask(0.280, 1, (1000,), (6, 8, 8, 12, 16, 24), (4, 6), _ANY),
    _Ask(0.090, 1, (1000,), (4, 8, 12, 16), (4, 6), ("T4", "A10", "A10|L40S", "L40S", "A100|H100", "H100")),
    # fine-tuning and training
    _Ask(0.040, 2, (1000,), (16, 24, 32), (4, 8), _ANY),
    _Ask(0.025, 4, (1000,), (32, 40, 48, 64), (4, 8), ("", "", "A100|H100", "L40S")),
    _Ask(0.025, 8, (1000,), (64, 80, 96, 96), (4, 8), ("", "", "", "H100")),
)


def make_fleet(node_count: int, seed: int) -> list[TraceNode]:
    """Nodes of the five kinds in fixed shares, at least one of each; the seed only shuffles the names."""
    if not MIN_NODES <= node_count <= MAX_NODES:
        raise UserError(f"a synthetic fleet of {node_count} nodes is outside {MIN_NODES} to {MAX_NODES:,}")
    edges = [round(sum(kind.share for kind in _KINDS[:k]) * node_count) for k in range(len(_KINDS) + 1)]
    kinds = [kind for kind, a, b in zip(_KINDS, edges, edges[1:], strict=False) for _ in range(a, b)]
    numbers = Draws(seed, "fleet").permutation(node_count).tolist()
    return [
        TraceNode(f"node-{number:05d}", kind.vcpus * 1000, kind.memory_gib * 1024, kind.gpus, kind.model)
        for number, kind in zip(numbers, kinds, strict=True)
    ]


def make_pods(nodes: Sequence[TraceNode], seed: int) -> list[TracePod]:
    """Pods that together request `DEMAND` of the fleet's GPUs."""
    target = DEMAND * WHOLE_GPU_MILLI * sum(node.gpu for node in nodes)
    weights = np.array([ask.weight for ask in _ASKS])
    mean = sum(a.weight * a.num_gpu * sum(a.gpu_milli) / len(a.gpu_milli) for a in _ASKS) / weights.sum()
    count = int(1.5 * target / mean) + 100
    which = Draws(seed, "asks").picks(weights, count)
    dice = [Draws(seed, purpose).uniform(count) for purpose in ("milli", "cpu", "memory", "spec")]
    pods: list[TracePod] = []
    requested = 0
    for number, (ask, *rolls) in enumerate(zip(which.tolist(), *(die.tolist() for die in dice), strict=True)):
        pod = _pod(f"pod-{number:06d}", _ASKS[ask], rolls)
        if requested + pod.requested_milli > target:
            # The large request that no longer fits is skipped, not the end: small ones fill the rest.
            if requested + WHOLE_GPU_MILLI > target:
                break
            continue
        requested += pod.requested_milli
        pods.append(pod)
    return pods


def _pod(name: str, ask: _Ask, rolls: Sequence[float]) -> TracePod:
    milli, vcpus, gib, spec = rolls
    cpus = _chosen(ask.vcpus, vcpus)
    return TracePod(
        name=name,
        cpu_milli=cpus * 1000,
        memory_mib=cpus * _chosen(ask.gib_per_vcpu, gib) * 1024,
        num_gpu=ask.num_gpu,
        gpu_milli=_chosen(ask.gpu_milli, milli),
        gpu_spec=_chosen(ask.specs, spec),
    )


def _chosen(choices: Sequence[_T], roll: float) -> _T:
    return choices[int(roll * len(choices))]
