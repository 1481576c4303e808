"""Finds machine types by name: `p5.48xlarge`, `aws/p5.48xlarge`, `dgx-h100`. An unknown name is rejected with similar
names.
"""

from __future__ import annotations

import difflib
import re
from functools import cache

from shoal.data.gpus import models
from shoal.data.instances import catalog
from shoal.embedded.machines.on_premises import boxes
from shoal.embedded.machines.shape import MachineShape, of_box, of_instance
from shoal.units.errors import UserError, Where, excerpt

_OFFERED = 4


def find_shape(name: str, where: Where) -> MachineShape:
    found = _shapes().get(name.lower())
    if found is None:
        fix = nearest(name, tuple(_spelled()))
        raise UserError(f"{excerpt(name)} is not a machine of the catalogue", where=where, fix=fix)
    return found


def shape_named(name: str) -> MachineShape | None:
    """The machine of the catalogue with this name or type, if there is one."""
    return _shapes().get(name.lower())


def machine_names() -> tuple[str, ...]:
    """The names of all machines, each once."""
    return tuple(dict.fromkeys(_spelled()))


def require_model(name: str, where: Where) -> None:
    known = tuple(model.name for model in models() if model.vendor == "nvidia")
    if name not in known:
        fix = nearest(name, known)
        raise UserError(f"{excerpt(name)} is not a GPU model", where=where, fix=fix)


def nearest(name: str, known: tuple[str, ...]) -> str:
    """`did you mean a, b?`: similar names, or names that contain the typed word."""
    plain = {_plain(one): one for one in reversed(known)}
    close = [plain[one] for one in difflib.get_close_matches(_plain(name), plain, n=_OFFERED, cutoff=0.5)]
    holding = [one for word, one in plain.items() if _plain(name) and _plain(name) in word]
    offered = list(dict.fromkeys([*close, *sorted(holding)]))[:_OFFERED]
    return f"did you mean {', '.join(offered)}?" if offered else f"such as {', '.join(known[:_OFFERED])}"


@cache
def _shapes() -> dict[str, MachineShape]:
    found = {name.lower(): of_box(box) for name, box in boxes().items()}
    for instance in catalog().instances:
        shape = of_instance(instance)
        found |= {instance.name.lower(): shape, instance.type.lower(): shape}
    return found


@cache
def _spelled() -> tuple[str, ...]:
    return ("p5.48xlarge", "dgx-h100", *boxes(), *(instance.type for instance in catalog().instances))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().rpartition("/")[2])
