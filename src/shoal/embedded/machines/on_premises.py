"""Defines server models of on-premises data centres, in addition to the catalogue of clouds.

They are here and not in `shoal.data`, because only simulated machines use them: no decision depends on them.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from shoal.data.facts import Fact, parse, require, require_unique
from shoal.data.gpus import find_model

FILE = "boxes.json"


class OnPremisesMachine(Fact, frozen=True):
    name: str
    machine: str
    """The product name in the firmware, as in the label `nvidia.com/gpu.machine`."""
    gpu: str
    gpus: int
    cpus: int
    memory_gib: float
    island_size: int
    numa: int
    per_rack: int
    arch: Literal["amd64", "arm64"] = "amd64"
    nvme_gb: int = 0
    hcas: int = 0
    rack_is_island: bool = False
    """Whether NVLink connects the machines of a rack to one domain (`nvidia.com/gpu.clique`)."""


class _OnPremisesFile(Fact, frozen=True):
    about: tuple[str, ...]
    boxes: tuple[OnPremisesMachine, ...]


@cache
def boxes() -> dict[str, OnPremisesMachine]:
    return parse_boxes(files("shoal.embedded.machines").joinpath(FILE).read_bytes())


def parse_boxes(data: bytes) -> dict[str, OnPremisesMachine]:
    """Parse and validate the server models."""
    found = parse(data, FILE, _OnPremisesFile).boxes
    require_unique((box.name for box in found), FILE, "box")
    for box in found:
        _check(box)
    return {box.name: box for box in found}


def _check(box: OnPremisesMachine) -> None:
    require((box.gpus == 0) == (not box.gpu), FILE, box.name, "a GPU model and a number of GPUs go together")
    require(not box.gpu or find_model(box.gpu), FILE, box.name, f"unknown GPU model {box.gpu}")
    amounts = (box.cpus, box.memory_gib, box.island_size, box.numa, box.per_rack)
    require(all(amount > 0 for amount in amounts), FILE, box.name, "amounts are positive")
    require(box.gpus % box.island_size == 0, FILE, box.name, "islands are not of one size")
    require(box.gpus == 0 or box.numa <= box.gpus, FILE, box.name, "a NUMA node has no GPU")
