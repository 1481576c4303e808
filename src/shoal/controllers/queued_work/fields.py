"""Sets and removes fields of plain objects by their path."""

from __future__ import annotations

from typing import Any

from shoal.store.queues.job_parts import Obj, Steps, dig


def put(obj: Obj, steps: Steps, value: Any) -> None:
    """Set the field; missing maps on the path are created."""
    here: Any = obj
    for at, step in enumerate(steps[:-1]):
        if isinstance(step, int):
            here = here[step]
        else:
            if here.get(step) is None:
                here[step] = [] if isinstance(steps[at + 1], int) else {}
            here = here[step]
    here[steps[-1]] = value


def put_or_drop(holder: Obj, key: str, value: Any) -> None:
    """Set the field, or remove it if the value is empty."""
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)


def string_map(obj: Any, *steps: str) -> dict[str, str]:
    """The map of strings at this path, empty if there is none."""
    found = dig(obj, steps)
    return found if isinstance(found, dict) else {}
