"""The FGD paper's scores and its fragmentation, one node at a time and in plain arithmetic.

Written from the paper's description, not from the engine: no columns, no caches, no numpy. The order of additions is
the published one, because truncated scores hang on the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from shoal.engine.pod_mix import PodClass

MOST_CPU = 128_000
MOST_GPU = 8_000
FULL = 1_000
SHARE = "share"

Kind = str | int
Typical = list[tuple[PodClass, float]]


@dataclass(frozen=True)
class State:
    """A node as the paper sees it; `kinds` are those of the GPU pods on it."""

    cpu: int
    pieces: tuple[int, ...]
    model: str = ""
    kinds: frozenset[Kind] = frozenset()

    @property
    def gpu(self) -> int:
        return sum(self.pieces)

    @property
    def empty(self) -> int:
        return self.pieces.count(FULL)

    def after(self, pod: PodClass, devices: tuple[int, ...]) -> State:
        pieces = tuple(left - pod.gpu_milli if i in devices else left for i, left in enumerate(self.pieces))
        return State(self.cpu - pod.cpu_milli, pieces, self.model, self.kinds)


def shares(pod: PodClass) -> bool:
    return pod.gpus == 1 and pod.gpu_milli < FULL


def kind_of_pod(pod: PodClass) -> Kind:
    return SHARE if shares(pod) else pod.gpus


def fits(node: State, pod: PodClass) -> bool:
    if node.cpu < pod.cpu_milli:
        return False
    if pod.gpus == 0:
        return True
    if pod.models and node.model not in pod.models.split("|"):
        return False
    return sum(left >= pod.gpu_milli for left in node.pieces) >= pod.gpus


def whole_devices(node: State, pod: PodClass) -> tuple[int, ...]:
    return tuple(i for i, left in enumerate(node.pieces) if left == FULL)[: pod.gpus]


def best_fit_device(node: State, pod: PodClass) -> tuple[int, ...]:
    """Which devices the policies without a choice of their own take."""
    if not shares(pod):
        return whole_devices(node, pod)
    return (min((left, i) for i, left in enumerate(node.pieces) if left >= pod.gpu_milli)[1],)


def dot_prod(node: State, pod: PodClass) -> int:
    product = (node.cpu / MOST_CPU) * (pod.cpu_milli / MOST_CPU) + (node.gpu / MOST_GPU) * (
        pod.total_gpu_milli / MOST_GPU
    )
    return int(100 * (1 - product / 2))


def best_fit(node: State, pod: PodClass) -> int:
    cpu = 0.5 * (node.cpu - pod.cpu_milli) / MOST_CPU
    gpu = 0.5 * (node.gpu - pod.total_gpu_milli) / MOST_GPU
    return int(100 * (1 - (cpu + gpu)))


def gpu_clustering(node: State, pod: PodClass) -> int:
    if pod.gpus == 0:
        return 0
    base = 25 * (MOST_GPU - node.gpu) // MOST_GPU
    own = kind_of_pod(pod)
    if own in node.kinds:
        return base + (75 if len(node.kinds) == 1 else 50)
    return base if node.kinds else base + 25


def gpu_packing(node: State, pod: PodClass) -> int:
    if pod.gpus == 0:
        return 0
    if node.empty == len(node.pieces):
        return max(33 - node.empty, node.empty)
    taken: list[int] = []
    for left in sorted(node.pieces):
        if left >= pod.gpu_milli and len(taken) < pod.gpus:
            taken.append(left)
    opened = taken.count(FULL)
    if opened:
        return max(50 - opened, 33)
    return max(100 - sum(left * 100 // FULL for left in taken) // 10, 50)


def typical_pods(pods: list[PodClass], share: float = 0.95) -> Typical:
    counts = sorted(Counter(pods).items(), key=lambda item: (item[1], _text_order(item[0])), reverse=True)
    chosen: list[tuple[PodClass, int]] = []
    cumulated = 0
    for pod_class, count in counts:
        chosen.append((pod_class, count))
        cumulated += count
        if cumulated / len(pods) >= share:
            break
    return [(pod_class, (count / len(pods)) / (cumulated / len(pods))) for pod_class, count in chosen]


def _text_order(pod: PodClass) -> tuple[int, int, int, str]:
    return pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.models


def fragmentation(node: State, typical: Typical) -> float:
    """F: six sums by cause, each in the order of the classes, added up in order."""
    lack_both = lack_gpu = lack_cpu = cpu_only_fits = cpu_only_lacks = foreign = 0.0
    for pod, weight in typical:
        everything = weight * node.gpu
        lacks_cpu = node.cpu < pod.cpu_milli
        if pod.gpus == 0:
            if lacks_cpu:
                cpu_only_lacks += everything
            else:
                cpu_only_fits += everything
        elif pod.models and node.model not in pod.models.split("|"):
            foreign += everything
        elif sum(left >= pod.gpu_milli for left in node.pieces) < pod.gpus:
            if lacks_cpu:
                lack_both += everything
            else:
                lack_gpu += everything
        elif lacks_cpu:
            lack_cpu += everything
        else:
            lack_gpu += weight * sum(left for left in node.pieces if left < pod.gpu_milli)
    return ((((lack_both + lack_gpu) + lack_cpu) + cpu_only_fits) + cpu_only_lacks) + foreign


def gradient_points(node: State, after: State, typical: Typical) -> int:
    gain = fragmentation(node, typical) - fragmentation(after, typical)
    return int(100 * (1 / (1 + math.exp(-gain / 1000))))


def fgd(node: State, pod: PodClass, typical: Typical) -> tuple[int, tuple[int, ...]]:
    """Points and devices."""
    if not shares(pod):
        devices = whole_devices(node, pod)
        return gradient_points(node, node.after(pod, devices), typical), devices
    best, chosen = -1, -1
    for device, left in enumerate(node.pieces):
        if left >= pod.gpu_milli:
            points = gradient_points(node, node.after(pod, (device,)), typical)
            if points > best:
                best, chosen = points, device
    return best, (chosen,)


PLAIN_SCORES = {
    "DotProd": dot_prod,
    "BestFit": best_fit,
    "GpuClustering": gpu_clustering,
    "GpuPacking": gpu_packing,
}
"""The four scores that need no mix; their policies take the best-fitting device."""
