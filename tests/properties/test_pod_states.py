"""The engine changes the state of a pod only as `TRANSITIONS` allows, and each listed transition occurs."""

from __future__ import annotations

from random import Random

from build.nodes import node
from build.yielding import Yielding, gpus
from shoal.engine.events import PodStays
from shoal.engine.pods import TRANSITIONS, PodState

NODES = tuple(node(f"n{index}").gpus(2) for index in range(3))
PODS = tuple(f"p{index}" for index in range(6))
Transition = tuple[PodState | None, PodState | None]


class History:
    """A cluster with the transitions that its pods have made."""

    def __init__(self, seed: int) -> None:
        self.seen: set[Transition] = set()
        self._random = Random(seed)
        self._cluster = Yielding(*NODES)
        self._asks = {pod: gpus(1 + index % 2) for index, pod in enumerate(PODS)}

    def step(self) -> None:
        before = self._states()
        self._act(self._random.choice(PODS))
        after = self._states()
        self.seen |= {(before[pod], after[pod]) for pod in PODS if before[pod] is not after[pod]}

    def _states(self) -> dict[str, PodState | None]:
        return {pod: self._cluster.intake.pod_state(pod) for pod in PODS}

    def _act(self, pod: str) -> None:
        cluster, random = self._cluster, self._random
        wanted = self._asks[pod]
        match random.choice(("arrive", "arrive", "cycle", "cycle", "bind", "end", "fail", "stay", "go", "nodes")):
            case "arrive":
                cluster.waits(pod, wanted, random.randrange(5))
            case "cycle":
                cluster.round()
            case "bind" | "end" as what:
                allocation = cluster.cluster.pods.get(pod)
                is_known = allocation is not None and random.random() < 0.4
                name = cluster.cluster.names[allocation.row] if allocation is not None and is_known else ""
                state = cluster.intake.pod_state(pod)
                if state in (PodState.BOUND, PodState.TERMINATING) and not name:
                    # A bound pod never changes its node.
                    return
                cluster.bind(pod, wanted, name or f"n{random.randrange(4)}", terminating=what == "end")
            case "fail":
                cluster.reject(pod)
            case "stay":
                cluster.apply(PodStays(pod))
            case "go":
                cluster.go(pod)
            case _:
                one = random.randrange(len(NODES))
                cluster.lose(f"n{one}") if random.random() < 0.5 else cluster.see(NODES[one])


def test_pods_change_their_states_exactly_as_the_table_lists() -> None:
    seen: set[Transition] = set()
    for seed in range(400):
        history = History(seed)
        for _ in range(60):
            history.step()
        seen |= history.seen
    assert seen == {(before, after) for before, targets in TRANSITIONS.items() for after in targets}


def test_every_state_has_a_row_in_the_table() -> None:
    assert set(TRANSITIONS) == {None, *PodState}
