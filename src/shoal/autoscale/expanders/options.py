"""Represents the ways in which a scale-up could serve pods, one for each node group."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class GroupTemplate(msgspec.Struct, frozen=True):
    """The capacity of one new node of a group."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    has_gpu: bool = False


class ServedPod(msgspec.Struct, frozen=True):
    """A pod that an option would serve."""

    name: str
    cpu_milli: int = 0
    memory_bytes: int = 0


class ScaleUpOption(msgspec.Struct, frozen=True):
    """A group, how many nodes it would get, and the pods that these would serve."""

    group: str
    nodes: int
    template: GroupTemplate | None = None
    pods: tuple[ServedPod, ...] = ()
    exists: bool = True
    """Otherwise the group would have to be created."""


class Prices(msgspec.Struct, frozen=True):
    """What the price expander knows."""

    node: Mapping[str, float] = {}
    """Of one node, by group."""
    pod: Mapping[str, float] = {}
    stabilization: float = 0.0
    preferred_cpu_milli: int = 0
    """Of the node that would suit the cluster best."""
