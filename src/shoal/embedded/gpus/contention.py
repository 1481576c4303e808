"""Models how programs on one device slow each other down.

Figures, all of which can be changed and the whole switched off (`Contention(is_on=False)`):

- **alone**: pace 1, memory up to that of the device.
- **time-slicing**: programs take turns. Each gets an equal share of the device, what one does not need goes to the
  others; a turn costs 5 % where several are at work. Memory is common: who comes last and finds none left fails.
- **MPS**: programs run side by side, each as quickly as the sum of what they want allows; being served by one process
  costs 3 %. Memory is limited to the device divided by the replicas, for each replica held.
- **MIG**: an instance is a device of its own, so nothing outside of it is felt.

Programs of a pod on several devices go on together, so the slowest of them tells the pace.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Contention(msgspec.Struct, frozen=True):
    is_on: bool = True
    turn_cost: float = 0.05
    mps_cost: float = 0.03
    usual_memory: float = 0.45
    """The default part of its limit that a program uses. A GPU that comes to be shared while one program
    holds all of it still has room for the others."""
    context_mib: int = 300
    """What the driver keeps for itself of each device."""


DOCUMENTED = Contention()


def pace(own: float, others: Sequence[float], sharing: str, rules: Contention = DOCUMENTED) -> float:
    """How quickly a program that wants `own` of a device goes on beside those that want `others`; 1 is alone."""
    busy = [util for util in others if util > 0]
    if not rules.is_on or not busy or own <= 0:
        return 1.0
    if sharing == "mps":
        return min(1.0, 1 / (own + sum(busy))) * (1 - rules.mps_cost)
    return min(own, _fair_share(own, busy)) / own * (1 - rules.turn_cost)


def _fair_share(own: float, others: Sequence[float]) -> float:
    """The max-min fair share of 1 for each demand."""
    left, waiting = 1.0, sorted([own, *others])
    for number, wish in enumerate(waiting):
        share = left / (len(waiting) - number)
        if wish >= share:
            return share
        left -= wish
    return own


def memory_limit(device_mib: int, replicas: int, held: int, sharing: str, rules: Contention = DOCUMENTED) -> int:
    """What one program may allocate of a device of which it holds so many replicas."""
    usable = max(device_mib - rules.context_mib, 1)
    return usable * held // replicas if sharing == "mps" and replicas > 1 else usable


def usual_memory(device_mib: int, replicas: int, held: int, rules: Contention = DOCUMENTED) -> int:
    return int(device_mib * rules.usual_memory * held / replicas)


def out_of_memory(gpu: int, wanted_mib: int, total_mib: int, free_mib: int) -> str:
    """As PyTorch says it."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_size(wanted_mib)}. "
        f"GPU {gpu} has a total capacity of {_size(total_mib)} of which {_size(max(free_mib, 0))} is free."
    )


def _size(mib: int) -> str:
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.2f} MiB"
