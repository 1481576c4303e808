"""Prints which GPUs hold a model: the memory part by part, then the ways to hold it, then what was assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from shoal.data.gpus import Model, read_product
from shoal.policy.sizing.fits import Fit, why_not
from shoal.policy.sizing.memory import FRAGMENTATION, MARGIN_OF_ERROR, memory_of
from shoal.policy.sizing.sharing_advice import sharing_advice
from shoal.policy.sizing.speed import SERVING_FORMULA, TRAINING_FORMULA
from shoal.policy.sizing.workload import ModelWorkload
from shoal.views.queue_table import KIND, NAME, NUMBER, Cell, show_table
from shoal.views.top import NodeTop

_GB = 1e9
_MOST_ROWS = 10
_SMALL = 10
_PARTS = ("weights", "cache", "gradients", "optimizer", "activations", "runtime")


@dataclass(frozen=True, slots=True)
class Sizing:
    """A workload with the ways to hold it."""

    workload: ModelWorkload
    gpus: Sequence[Model]
    """That were considered."""
    fits: Sequence[Fit]
    nodes: Sequence[NodeTop] | None = None
    """Of a cluster, if one was read."""

    def places(self, fit: Fit) -> int | None:
        """How many times the free GPUs of the cluster hold it: a tensor group stays on one node."""
        if self.nodes is None:
            return None
        usable = [node for node in self.nodes if node.state == "ready" and read_product(node.model).model == fit.gpu]
        if fit.profile:
            slices = [node.slices[fit.profile] for node in usable if fit.profile in node.slices]
            return sum(each.total - each.held for each in slices)
        return sum(sum(1 for free in node.devices if free >= 1) // fit.tensor for node in usable) // fit.pipeline

    def without(self) -> list[Model]:
        """GPUs of which no group holds it."""
        held = {fit.gpu.name for fit in self.fits}
        return [model for model in self.gpus if model.name not in held]


def largest_nodes(nodes: Sequence[NodeTop] | None) -> dict[str, int]:
    """GPUs of the largest node with each model."""
    found: dict[str, int] = {}
    for node in nodes or ():
        model = read_product(node.model).model
        if model is not None:
            found[model.name] = max(found.get(model.name, 0), node.gpus)
    return found


def show_size(console: Console, sizing: Sizing, *, is_wide: bool) -> None:
    console.print(Text(_headline(sizing.workload)))
    shown = sizing.fits if is_wide else sizing.fits[:_MOST_ROWS]
    if shown:
        console.print()
        columns = [each for each in _COLUMNS if (is_wide or not each.is_wide) and _is_known(each, sizing)]
        rows = [[each.cell(sizing, fit) for each in columns] for fit in shown]
        show_table(console, [each.heading for each in columns], [each.least for each in columns], rows, ())
        if len(sizing.fits) > len(shown):
            rest = len(sizing.fits) - len(shown)
            console.print(Text(f"and {rest} more, which cost more; -o wide shows them", "dim"))
    for line in sharing_advice(sizing.fits):
        console.print(Text(line))
    for model in sizing.without() if is_wide or not sizing.fits else ():
        console.print(Text(f"{model.name}: {why_not(sizing.workload, model)}", "yellow"))
    console.print()
    for line in notes(sizing.workload):
        console.print(Text(line, "dim"))


def notes(workload: ModelWorkload) -> list[str]:
    """What was assumed, and by which formula."""
    formula = TRAINING_FORMULA if workload.training else SERVING_FORMULA
    return [
        *(f"assumed: {each}" for each in workload.assumptions),
        f"memory: an estimate within {MARGIN_OF_ERROR:.0%}; {FRAGMENTATION:.0%} of each GPU is kept for fragmentation",
        f"tokens/s: {formula}",
        "prices: on-demand list prices of the catalogue, 730 hours a month; instances by their part of the memory",
    ]


def size_document(sizing: Sizing) -> dict[str, Any]:
    workload, alone = sizing.workload, memory_of(sizing.workload)
    return {
        "model": workload.model.name,
        "parameters": workload.model.parameters,
        "dtype": workload.dtype,
        "context": workload.context,
        "concurrency": workload.concurrency,
        "training": workload.training or None,
        "memoryBytes": {name: round(getattr(alone, name)) for name in (*_PARTS, "needed")},
        "fits": [_fit_document(sizing, fit) for fit in sizing.fits],
        "sharing": list(sharing_advice(sizing.fits)),
        "doesNotFit": [model.name for model in sizing.without()],
        "reasons": {model.name: why_not(sizing.workload, model) for model in sizing.without()},
        "notes": notes(workload),
    }


def _fit_document(sizing: Sizing, fit: Fit) -> dict[str, Any]:
    per_million = fit.usd_per_million_tokens
    return {
        "gpu": fit.gpu.name,
        "gpus": fit.gpus,
        "migProfile": fit.profile or None,
        "tensorParallel": fit.tensor,
        "pipelineParallel": fit.pipeline,
        "neededBytes": round(fit.memory.needed),
        "memoryBytes": round(fit.memory_bytes),
        "leastSharePercent": fit.share_percent if _is_shareable(fit) else None,
        "tokensPerSecond": None if fit.rate is None else [round(fit.rate.low, 1), round(fit.rate.high, 1)],
        "usdPerHour": _money(fit.usd_per_hour),
        "usdPerMonth": _money(fit.usd_per_month),
        "usdPerMillionTokens": None if per_million is None else _money(per_million),
        **({} if sizing.nodes is None else {"placesFree": sizing.places(fit)}),
    }


def _headline(workload: ModelWorkload) -> str:
    memory = memory_of(workload)
    parts = [f"{getattr(memory, name) / _GB:.1f} GB {name}" for name in _PARTS if getattr(memory, name) >= _GB / 20]
    kind = f"to train it ({workload.training})" if workload.training else "to serve it"
    return (
        f"{workload.model.name}, {workload.model.parameters / 1e9:.3g} billion parameters in {workload.dtype}: "
        f"{memory.needed / _GB:.1f} GB {kind} ({', '.join(parts)})"
    )


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    least: int
    cell: Callable[[Sizing, Fit], Cell]
    is_wide: bool = False
    is_of_cluster: bool = False


def _is_known(column: _Column, sizing: Sizing) -> bool:
    return sizing.nodes is not None or not column.is_of_cluster


def _name(_: Sizing, fit: Fit) -> Cell:
    return f"{fit.gpu.name} {fit.profile}" if fit.profile else f"{fit.gpus} x {fit.gpu.name}"


def _rate(_: Sizing, fit: Fit) -> Cell:
    return "unknown" if fit.rate is None else f"{_short(fit.rate.low)} to {_short(fit.rate.high)}"


def _layout(_: Sizing, fit: Fit) -> Cell:
    if fit.profile:
        return "MIG instance"
    if fit.gpus == 1:
        return "one GPU"
    stages = f" x PP {fit.pipeline}" if fit.pipeline > 1 else ""
    return f"TP {fit.tensor}{stages}{'' if fit.gpu.link else ', no NVLink'}"


def _per_million(_: Sizing, fit: Fit) -> Cell:
    usd = fit.usd_per_million_tokens
    return "·" if usd is None else _money(usd)


def _is_shareable(fit: Fit) -> bool:
    return not fit.profile and fit.gpus == 1


_COLUMNS: Final = (
    _Column("GPUs", NAME, _name),
    _Column("free here", NUMBER, lambda sizing, fit: str(sizing.places(fit)), is_of_cluster=True),
    _Column("memory each", NUMBER, lambda _, fit: f"{fit.memory_bytes / _GB:.0f} GB"),
    _Column("used", NUMBER, lambda _, fit: f"{fit.memory.needed / fit.memory_bytes:.0%}"),
    _Column("tokens/s", NUMBER, _rate),
    _Column("$/hour", NUMBER, lambda _, fit: _money(fit.usd_per_hour)),
    _Column("$/month", NUMBER, lambda _, fit: f"{fit.usd_per_month:,.0f}"),
    _Column("$/M tokens", NUMBER, _per_million),
    _Column("layout", KIND, _layout, is_wide=True),
    _Column(
        "least share", NUMBER, lambda _, fit: f"{fit.share_percent} %" if _is_shareable(fit) else "·", is_wide=True
    ),
)


def _money(usd: Decimal) -> str:
    return f"{usd:.2f}"


def _short(rate: float) -> str:
    return f"{rate:.2g}" if rate < _SMALL else f"{rate:,.0f}"
