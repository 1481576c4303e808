"""Models how programs on one device slow each other down.

Rules; all figures can be changed, and the model can be disabled (`ContentionSettings(is_on=False)`):

- **alone**: speed 1, memory up to that of the device.
- **time-slicing**: programs take turns. Each gets an equal share of the device, and unused shares go to the others;
  with several programs, switching costs 5 %. Memory is shared: a program that starts when none is left fails.
- **MPS**: programs run concurrently, slowed down if their demands exceed the device; the common server process costs 3
  %. Memory is limited to the device divided by the replicas, for each replica held.
- **MIG**: an instance is a device of its own, unaffected by others.

The programs of a pod on several devices progress together, at the speed of the slowest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class ContentionSettings(msgspec.Struct, frozen=True):
    is_on: bool = True
    turn_cost: float = 0.05
    mps_cost: float = 0.03
    usual_memory: float = 0.45
    """The default part of its limit that a program uses. A GPU that becomes shared while one program has all of it
    still has memory for the others.
    """
    context_mib: int = 300
    """The memory of each device that the driver reserves."""


DOCUMENTED = ContentionSettings()


def pace(own: float, others: Sequence[float], sharing: str, rules: ContentionSettings = DOCUMENTED) -> float:
    """The speed of a program that demands `own` of a device beside programs that demand `others`; 1: alone."""
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


def memory_limit(
    device_mib: int, replicas: int, held: int, sharing: str, rules: ContentionSettings = DOCUMENTED
) -> int:
    """The memory that one program may allocate on a device of which it holds this number of replicas."""
    usable = max(device_mib - rules.context_mib, 1)
    return usable * held // replicas if sharing == "mps" and replicas > 1 else usable


def usual_memory(device_mib: int, replicas: int, held: int, rules: ContentionSettings = DOCUMENTED) -> int:
    return int(device_mib * rules.usual_memory * held / replicas)


def out_of_memory(gpu: int, wanted_mib: int, total_mib: int, free_mib: int) -> str:
    """PyTorch's error message."""
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {_size(wanted_mib)}. "
        f"GPU {gpu} has a total capacity of {_size(total_mib)} of which {_size(max(free_mib, 0))} is free."
    )


def _size(mib: int) -> str:
    return f"{mib / 1024:.2f} GiB" if mib >= 1024 else f"{mib:.2f} MiB"
