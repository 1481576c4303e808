"""Fields of plain objects, set and taken away by their way in."""

from __future__ import annotations

from typing import Any

from shoal.store.queues.job_parts import Obj, Steps, dig


def put(obj: Obj, steps: Steps, value: Any) -> None:
    """Set it; what is missing on the way is made, as far as it is maps."""
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
    """Nothing, and what is empty, is not written at all."""
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)


def texts(obj: Any, *steps: str) -> dict[str, str]:
    """A map of texts, empty where there is none."""
    found = dig(obj, steps)
    return found if isinstance(found, dict) else {}
