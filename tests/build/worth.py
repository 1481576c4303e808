"""The worth of a node's free room by the formula in `shoal.engine.worth.tables`, in floats and one node at a time.

Nothing is tabulated, rounded or cached: thousandths of a GPU go in and come out.
"""

from __future__ import annotations

from functools import cache

from build.paper import State
from shoal.engine.pod_mix import PodClass, PodMix
from shoal.engine.worth.tables import WorthParameters

FULL = 1000
GRAIN = 10
MOST_PRESSURE = 9.0


def piece_worths(chances: dict[int, float], visitors: int) -> list[float]:
    """Worth of a piece of 0 to 100 hundredths when `visitors` come by, each asking for so much with such a chance.

    Read backwards: with one visitor left, with two left, and so on, an owner lets a visitor in only if that beats
    waiting.
    """

    @cache
    def worth(size: int, left: int) -> float:
        if left == 0:
            return 0.0
        wait = worth(size, left - 1)
        gain = 0.0
        for wanted, chance in sorted(chances.items()):
            if wanted <= size:
                gain += chance * max(wanted * GRAIN + worth(size - wanted, left - 1) - wait, 0.0)
        return wait + gain

    for left in range(visitors):
        for size in range(101):
            worth(size, left)
    return [worth(size, visitors) for size in range(101)]


class Valuation:
    """What nodes are worth for one mix while the fleet is in a given state."""

    def __init__(self, mix: PodMix, fleet: list[State], temper: WorthParameters | None = None) -> None:
        self._temper = temper or WorthParameters()
        self._total = mix.total
        self._gpu_classes = [(pod, count) for pod, count in mix.counts if pod.gpus]
        self._requested = sum(pod.total_gpu_milli * count for pod, count in self._gpu_classes)
        cpu = sum(pod.cpu_milli * count for pod, count in self._gpu_classes)
        self._gpu_per_cpu = self._requested / cpu
        self._fleet = fleet
        self._remaining = sum(node.gpu for node in fleet) / self._requested
        self._piece_tables: dict[str, list[float]] = {}

    def points(self, node: State, pod: PodClass, devices: tuple[int, ...]) -> float:
        """Steps of worth kept by the placement, before rounding."""
        used = pod.total_gpu_milli
        kept = self._worth(node.after(pod, devices)) - self._worth(node)
        return (kept + used * (1 - self.price(node.model))) / self._temper.noise_milli

    def best(self, node: State, pod: PodClass) -> float:
        if pod.gpus != 1 or pod.gpu_milli == FULL:
            whole = tuple(i for i, left in enumerate(node.pieces) if left == FULL)[: pod.gpus]
            return self.points(node, pod, whole)
        return max(self.points(node, pod, (i,)) for i, left in enumerate(node.pieces) if left >= pod.gpu_milli)

    def price(self, model: str) -> float:
        """Demand pinned to the model against its supply; what is pinned to several splits by their supply."""
        supply = {state.model: 0 for state in self._fleet}
        for state in self._fleet:
            supply[state.model] += state.gpu
        if not supply.get(model):
            return 0.0
        demand = 0.0
        for pod, count in self._gpu_classes:
            if pod.models and model in pod.model_set:
                among = sum(supply.get(each, 0) for each in pod.model_set)
                demand += self._remaining * count * pod.total_gpu_milli * supply[model] / among
        return min(self._temper.price_of_scarcity * demand / supply[model], self._temper.most_price)

    def _worth(self, node: State) -> float:
        table = self.pieces(node.model)
        return sum(table[left // GRAIN] for left in node.pieces) + self.block(node) + self._balance(node)

    def pieces(self, model: str) -> list[float]:
        table = self._piece_tables.get(model)
        if table is None:
            devices = sum(pod.gpus * count for pod, count in self._gpu_classes)
            sharers = sum(count for pod, count in self._gpu_classes if pod.gpu_milli < FULL)
            chances: dict[int, float] = {}
            for pod, count in self._gpu_classes:
                if pod.gpus == 1 and (not pod.models or model in pod.model_set):
                    size = -(-pod.gpu_milli // GRAIN)
                    chances[size] = chances.get(size, 0.0) + count / devices
            most = self._temper.most_visitors
            visitors = min(round(self._temper.sharers_awaited * devices / sharers), most) if sharers else most
            table = self._piece_tables[model] = piece_worths(chances, visitors)
        return table

    def block(self, node: State) -> float:
        multiple = [(pod, count) for pod, count in self._gpu_classes if 1 < pod.gpus <= node.empty]
        total = 0.0
        for pod, count in multiple:
            if (not pod.models or node.model in pod.model_set) and self._room(pod.gpus, pod.cpu_milli, node.model):
                needs = [other.cpu_milli for other, _ in multiple if other.gpus == pod.gpus]
                weight = max(self._weight(pod.gpus, need) for need in needs if need <= pod.cpu_milli)
                total += weight * FULL * node.empty * count / self._total
        return total

    def _weight(self, size: int, need: int) -> float:
        expected = self._remaining * sum(
            n for pod, n in self._gpu_classes if pod.gpus == size and pod.cpu_milli >= need
        )
        feared = expected + self._temper.safety_of_blocks * expected**0.5
        room = sum(self._room(size, need, model) for model in {state.model for state in self._fleet})
        pressure: float = (feared / room if room else MOST_PRESSURE) ** self._temper.pressure_of_blocks
        return min(self._temper.weight_of_blocks * pressure, self._temper.most_weight_of_blocks)

    def _room(self, size: int, need: int, model: str) -> int:
        nodes = [state for state in self._fleet if state.model == model]
        return sum(min(state.empty // size, state.cpu // max(need, 1)) for state in nodes)

    def _balance(self, node: State) -> float:
        gpu, cpu = node.gpu, node.cpu * self._gpu_per_cpu
        return self._temper.weight_of_balance * gpu * cpu / (gpu + cpu) if gpu + cpu else 0.0
