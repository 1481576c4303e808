"""`shoal cost calculate NAME`: calculators of savings, from prices and hours that the user gives."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.formats import TEXTS, TextOutput, checked
from shoal.cli.known_names import check_known
from shoal.cli.option_groups import with_options
from shoal.units.errors import UserError, Where

if TYPE_CHECKING:
    from shoal.cost.calculators import Calculator

_NAMES = (
    "idle",
    "mig",
    "slice",
    "spot",
    "consolidation",
    "reservation",
    "commitment",
    "chargeback",
    "waste",
    "fleet",
    "models",
    "compare",
    "targets",
)


def _input(name: str, metavar: str, help_: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=help_)


@dataclass(frozen=True, kw_only=True)
class CalculatorInputs:
    per_hour: Annotated[str, _input("per-hour", "AMOUNT", "The price of an hour: of a GPU; of a node for fleet.")] = ""
    hours: Annotated[str, _input("hours", "NUMBER", "The hours of the period.")] = ""
    gpus: Annotated[str, _input("gpus", "COUNT", "GPUs.")] = ""
    nodes: Annotated[str, _input("nodes", "COUNT", "Nodes.")] = ""
    memory_gb: Annotated[str, _input("memory-gb", "NUMBER", "The memory of the GPU.")] = ""
    used_gb: Annotated[str, _input("used-gb", "NUMBER", "What of the memory is used.")] = ""
    utilisation: Annotated[str, _input("utilisation", "PERCENT", "The utilisation of the GPUs.")] = ""
    activity: Annotated[str, _input("activity", "PERCENT", "The peak of SM activity.")] = ""
    target: Annotated[str, _input("target", "PERCENT", "The utilisation to reach.")] = ""
    gpu: Annotated[str, _input("gpu", "MODEL", "The model of the GPU, as H100-SXM5-80GB.")] = ""
    services: Annotated[str, _input("services", "COUNT", "Services with a GPU each.")] = ""
    slices: Annotated[str, _input("slices", "COUNT", "MIG instances of a GPU.")] = ""
    gpu_hours: Annotated[str, _input("gpu-hours", "NUMBER", "Hours of GPUs.")] = ""
    on_demand: Annotated[str, _input("on-demand", "AMOUNT", "The price of an hour on demand.")] = ""
    spot: Annotated[str, _input("spot", "AMOUNT", "The spot price of an hour.")] = ""
    reserved: Annotated[str, _input("reserved", "AMOUNT", "The price of a reserved hour.")] = ""
    committed: Annotated[str, _input("committed", "AMOUNT", "The price of a committed hour of a node.")] = ""
    load: Annotated[str, _input("load", "LOAD", "Nodes in use, as NODESxHOURS: 4x16,10x8.")] = ""
    fewer: Annotated[str, _input("fewer", "COUNT", "GPUs that are given back off peak.")] = ""
    hours_per_day: Annotated[str, _input("hours-per-day", "NUMBER", "Hours off peak of a day.")] = ""
    days: Annotated[str, _input("days", "COUNT", "The days of the period.")] = ""
    held: Annotated[str, _input("held", "USE", "TEAM=GPUHOURS@PERCENT: research=12000@65,production=8000@85.")] = ""
    charge: Annotated[str, _input("charge", "MODE", "usage or request.")] = ""
    gpus_per_node: Annotated[str, _input("gpus-per-node", "COUNT", "GPUs of a node.")] = ""
    invested: Annotated[str, _input("invested", "AMOUNT", "What all GPUs cost.")] = ""
    models: Annotated[str, _input("models", "COUNT", "Models that are served.")] = ""
    before: Annotated[str, _input("before", "AMOUNT", "The cost before.")] = ""
    after: Annotated[str, _input("after", "AMOUNT", "The cost after.")] = ""
    fleet_utilisation: Annotated[str, _input("fleet-utilisation", "PERCENT", "Mean utilisation of all GPUs.")] = ""
    pod_memory: Annotated[str, _input("pod-memory", "PERCENT", "Used part of the GPU memory that a pod holds.")] = ""
    research_wait_p95: Annotated[str, _input("research-wait-p95", "HOURS", "P95 of waits in queues of research.")] = ""
    production_wait_p95: Annotated[str, _input("production-wait-p95", "HOURS", "P95 of waits of production.")] = ""
    pod_idle: Annotated[str, _input("pod-idle", "PERCENT", "Idle part of the time in which a pod holds GPUs.")] = ""

    def given(self) -> dict[str, str]:
        fields = ((one.name.replace("_", "-"), getattr(self, one.name)) for one in dataclasses.fields(self))
        return {name: value for name, value in fields if value}


@with_options
def calculate(
    inputs: CalculatorInputs,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="The calculator.", autocompletion=one_of(_NAMES))] = "",
    output: TextOutput = TEXTS[0],
) -> None:
    """Calculate what a change would save, from your prices: slices, spot, reservations, fewer GPUs, chargeback.

    Without a name the calculators are listed with their inputs. No history is read.
    """
    from shoal.cli.formats import console, write
    from shoal.cost.calculators import CALCULATORS
    from shoal.cost.calculators import calculate as calculated
    from shoal.views.cost_calculations import figure_rows, show_calculators, show_figures

    checked(output, TEXTS)
    given = inputs.given()
    if not name:
        if given:
            raise UserError(
                "needs the name of a calculator", where=Where(path="NAME"), fix=f"one of {', '.join(_NAMES)}"
            )
        if output == "text":
            show_calculators(console(), CALCULATORS)
        else:
            write([_document(one) for one in CALCULATORS], output)
        return
    check_known(name, _NAMES, "calculator", Where(path="NAME"))
    chosen = next(one for one in CALCULATORS if one.name == name)
    found = calculated(chosen, given)
    if output == "text":
        show_figures(console(), found)
    else:
        write({"calculator": name, "inputs": given, "results": figure_rows(found)}, output)


def _document(one: Calculator) -> dict[str, object]:
    inputs = [
        {"name": each.name, "kind": each.kind, "default": each.default, "optional": each.is_optional}
        for each in one.inputs
    ]
    return {"name": one.name, "about": one.about, "inputs": inputs}
