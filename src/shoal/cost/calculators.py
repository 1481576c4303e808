"""The calculators of savings by name: their inputs as users write them, and their results with units.

Every price, hour and utilisation is an input. An input has a default only where it is a convention: 730 hours a month,
8760 a year, 30 days.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Literal, NamedTuple

import msgspec

from shoal.cost import savings
from shoal.cost.chargeback import CHARGE_MODES, HELD, ChargePolicy, charges
from shoal.cost.prices.on_premises import HOURS_PER_MONTH, HOURS_PER_YEAR
from shoal.cost.right_size import is_underused, slice_for
from shoal.cost.savings import Saving
from shoal.cost.statement import CostRow
from shoal.cost.targets import TARGETS, CostTarget, breaches
from shoal.data.gpus import find_model
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.money import MoneyError, money

Kind = Literal["amount", "positive", "count", "percent", "part", "text"]
"""`positive` is an amount above 0, `part` a percentage above 0."""
Values = Mapping[str, Decimal]
_HUNDRED = 100
_MOST_HOURS = 100_000
_COUNT = re.compile("[0-9]{1,9}")
_PERIOD = re.compile("([0-9]{1,6})x([0-9]{1,6})")
_HELD = re.compile(r"([^=]+)=([0-9.]+)@([0-9.]+)%?")
_BY_USE: tuple[str, ...] = ("request", "usage")


class Input(NamedTuple):
    name: str
    kind: Kind
    default: str = ""
    """Empty: the user has to give it."""
    is_optional: bool = False


class Figure(msgspec.Struct, frozen=True):
    name: str
    value: Decimal | int | str
    unit: str = ""


class Calculator(NamedTuple):
    name: str
    about: str
    inputs: tuple[Input, ...]
    compute: Callable[[Values, Mapping[str, str]], list[Figure]]
    """Of the numbers and of the texts."""


def calculate(found: Calculator, given: Mapping[str, str]) -> list[Figure]:
    """`given`: inputs by their names, as written. Raises UserError for one that is missing, wrong or of another
    calculator."""
    names = [one.name for one in found.inputs]
    if other := next((name for name in given if name not in names), None):
        fix = f"its inputs are {', '.join(_option(name) for name in names)}"
        raise UserError(f"{_option(other)} is no input of {found.name}", where=Where(path=_option(other)), fix=fix)
    missing = [one.name for one in found.inputs if not (given.get(one.name) or one.default or one.is_optional)]
    if missing:
        fix = f"write {' '.join(f'{_option(name)} {_METAVARS[_kind(found, name)]}' for name in missing)}"
        raise UserError(f"needs {', '.join(_option(name) for name in missing)}", where=Where(path=found.name), fix=fix)
    numbers: dict[str, Decimal] = {}
    texts: dict[str, str] = {}
    for one in found.inputs:
        text = given.get(one.name) or one.default
        if one.kind == "text":
            texts[one.name] = text
        elif text:
            numbers[one.name] = _number(one, text)
    return found.compute(numbers, texts)


def _idle(at: Values, _: Mapping[str, str]) -> list[Figure]:
    total, used, price = at["memory-gb"], at["used-gb"], at["per-hour"]
    _check_at_most("used-gb", used, "memory-gb", total)
    by_memory = savings.idle_by_memory(total, used, price)
    found = [
        Figure("idle memory", 100 * (total - used) / total, "%"),
        Figure("idle", by_memory, "per hour"),
        Figure("idle", by_memory * 24, "per day"),
        Figure("idle", by_memory * HOURS_PER_MONTH, "per month of 730 hours"),
    ]
    if "utilisation" in at:
        both = savings.idle_cost(used / total, at["utilisation"] / _HUNDRED, price)
        found.append(Figure("idle by utilisation", both.by_utilisation, "per hour"))
        found.append(Figure("idle by both", both.by_both, "per hour"))
    return found


def _mig(at: Values, _: Mapping[str, str]) -> list[Figure]:
    services, slices = int(at["services"]), int(at["slices"])
    found = savings.mig_saving(services, slices, at["per-hour"])
    return [
        Figure("GPUs", savings.gpus_for_services(services, slices)),
        *_saved(found, "per hour"),
        Figure("saved", savings.per_month(found, at["hours"]).amount, f"per month of {at['hours']:f} hours"),
    ]


def _slice(at: Values, texts: Mapping[str, str]) -> list[Figure]:
    model = find_model(texts["gpu"])
    if model is None:
        fix = "write a model of shoal explain gpus, such as H100-SXM5-80GB"
        raise UserError(f"no GPU {excerpt(texts['gpu'])} is known", where=Where(path="--gpu"), fix=fix)
    total, used = Decimal(model.memory_gb), at["used-gb"]
    if used > total:
        raise UserError(f"{model.name} has {total} GB", where=Where(path="--used-gb"), fix="write what one GPU holds")
    layout = model.mig_layout()
    activity = at.get("activity", Decimal(0)) / _HUNDRED
    best = None if layout is None else slice_for(layout, total, used, activity)
    found = [Figure("wasted memory", 100 * (total - used) / total, "%")]
    if best is None:
        found.append(Figure("MIG profile", "none: only the whole GPU suffices" if layout else "none: has no MIG"))
    else:
        found += [Figure("MIG profile", best.profile), Figure("per GPU", best.per_gpu)]
    if "utilisation" in at:
        is_low = is_underused(at["utilisation"] / _HUNDRED)
        found.append(Figure("below 30 % utilisation", "yes: use MIG or time-slicing" if is_low else "no"))
    return found


def _spot(at: Values, _: Mapping[str, str]) -> list[Figure]:
    return _saved(savings.spot_saving(at["gpu-hours"], at["on-demand"], at["spot"]), "")


def _consolidation(at: Values, _: Mapping[str, str]) -> list[Figure]:
    _check_at_most("fewer", at["fewer"], "gpus", at["gpus"])
    if at["hours-per-day"] > 24:
        raise UserError("a day has 24 hours", where=Where(path="--hours-per-day"))
    counts = int(at["gpus"]), int(at["fewer"])
    days = int(at["days"])
    found = savings.consolidation_saving(*counts, at["hours-per-day"], at["per-hour"], days)
    return _saved(found, f"off peak in {days} days")


def _reservation(at: Values, _: Mapping[str, str]) -> list[Figure]:
    found = savings.reservation_saving(int(at["nodes"]), at["on-demand"], at["reserved"], at["hours"])
    return _saved(found, f"in {at['hours']:f} hours")


def _chargeback(at: Values, texts: Mapping[str, str]) -> list[Figure]:
    mode = next((one for one in CHARGE_MODES if one == texts["charge"] and one in _BY_USE), None)
    if mode is None:
        raise UserError(
            f"{excerpt(texts['charge'])} is not for held hours",
            where=Where(path="--charge"),
            fix="write request or usage",
        )
    rows = []
    for part in texts["held"].split(","):
        found = _HELD.fullmatch(part.strip())
        if found is None:
            fix = "write TEAM=GPUHOURS@PERCENT, as in research=12000@65,production=8000@85"
            raise UserError(f"{excerpt(part)} is no use of a team", where=Where(path="--held"), fix=fix)
        hours = _number(Input("held", "amount"), found[2])
        used = _number(Input("held", "percent"), found[3])
        amount = hours * at["per-hour"]
        of_use = amount * used / _HUNDRED
        rows.append(CostRow(found[1], 0, HELD[0], amount, amount, used_amount=of_use, gpu_hours=hours))
    billed = charges(rows, ChargePolicy(mode))
    names = {"": "not charged"}
    return [
        Figure(names.get(one.group, one.group), one.amount)
        for one in sorted(billed, key=lambda one: not one.group)
        if one.group or one.amount
    ]


def _targets(at: Values, _: Mapping[str, str]) -> list[Figure]:
    if not at:
        names = ", ".join(_option(one.figure) for one in TARGETS)
        raise UserError("needs a figure", where=Where(path="targets"), fix=f"write one or more of {names}")
    scales = {one.figure: Decimal(1 if _is_wait(one) else _HUNDRED) for one in TARGETS}
    missed = {one.figure: one.reading for one in breaches({name: value / scales[name] for name, value in at.items()})}
    return [
        Figure(one.figure, f"missed, {_wanted(one)}: {missed[one.figure]}" if one.figure in missed else "kept")
        for one in TARGETS
        if one.figure in at
    ]


def _is_wait(target: CostTarget) -> bool:
    return target.figure.endswith("-wait-p95")


def _wanted(target: CostTarget) -> str:
    limits = [
        f"{words} {_limit(target, value)}"
        for words, value in (("at least", target.at_least), ("at most", target.at_most))
        if value is not None
    ]
    return f"wanted {' and '.join(limits)}"


def _limit(target: CostTarget, value: Decimal) -> str:
    return f"{round(value, 2).normalize():f} hours" if _is_wait(target) else f"{(value * _HUNDRED).normalize():f} %"


def _models(at: Values, _: Mapping[str, str]) -> list[Figure]:
    found = Saving(*(savings.cost_per_model(at["invested"], int(at[name])) for name in ("gpus", "models")))
    return _saved(found, "per model")


def _compare(at: Values, _: Mapping[str, str]) -> list[Figure]:
    return _saved(Saving(at["before"], at["after"]), "")


def _waste(at: Values, _: Mapping[str, str]) -> list[Figure]:
    found = savings.waste(
        at["gpus"] * at["per-hour"] * at["hours"], at["utilisation"] / _HUNDRED, at["target"] / _HUNDRED
    )
    unit = f"in {at['hours']:f} hours"
    return [
        Figure("spent", found.spent, unit),
        Figure("idle", found.idle, unit),
        Figure("idle at the target", found.idle_at_target, unit),
        Figure("the same work at the target", found.same_work, unit),
        Figure("saved", found.saved, unit),
    ]


def _fleet(at: Values, _: Mapping[str, str]) -> list[Figure]:
    hourly = at["nodes"] * at["per-hour"]
    return [
        Figure("per GPU", at["per-hour"] / at["gpus-per-node"], "per hour"),
        Figure("fleet", hourly, "per hour"),
        Figure("fleet", hourly * at["hours"], f"in {at['hours']:f} hours"),
        Figure("fleet", hourly * HOURS_PER_YEAR, "per year"),
    ]


def _commitment(at: Values, texts: Mapping[str, str]) -> list[Figure]:
    load: list[int] = []
    for part in texts["load"].split(","):
        found = _PERIOD.fullmatch(part.strip())
        if found is None:
            fix = "write NODESxHOURS, as in 4x16,10x8"
            raise UserError(f"{excerpt(part)} is no load", where=Where(path="--load"), fix=fix)
        if len(load) + int(found[2]) > _MOST_HOURS:
            raise UserError(
                f"has more than {_MOST_HOURS} hours", where=Where(path="--load"), fix="write a shorter load"
            )
        load += [int(found[1])] * int(found[2])
    level = savings.commitment_level(load, at["committed"], at["on-demand"])
    return [Figure("committed nodes", level.nodes), *_saved(Saving(level.on_demand_only, level.cost), "")]


def _saved(found: Saving, unit: str) -> list[Figure]:
    ratio, has_percent = found.ratio, found.before or not found.after
    return [
        Figure("before", found.before, unit),
        Figure("after", found.after, unit),
        Figure("saved", found.amount, unit),
        *([Figure("saved", found.percent, "%")] if has_percent else []),
        *([] if ratio is None else [Figure("before / after", ratio, "times")]),
    ]


def _number(one: Input, text: str) -> Decimal:
    where = Where(path=_option(one.name))
    if one.kind == "count":
        if not _COUNT.fullmatch(text) or not int(text):
            raise UserError(f"{excerpt(text)} is no number of them", where=where, fix="write a whole number above 0")
        return Decimal(text)
    is_percent = one.kind in ("percent", "part")
    try:
        found = money(text.removesuffix("%") if is_percent else text)
    except MoneyError as error:
        raise UserError(f"{excerpt(text)} {error}", where=where) from None
    if is_percent and found > _HUNDRED:
        raise UserError(f"{excerpt(text)} is more than 100 percent", where=where, fix="write a percentage, as in 65")
    if one.kind in ("positive", "part") and not found:
        raise UserError("must be more than 0", where=where)
    return found


def _check_at_most(name: str, value: Decimal, other: str, most: Decimal) -> None:
    if value > most:
        raise UserError(f"is more than {_option(other)}", where=Where(path=_option(name)))


def _kind(found: Calculator, name: str) -> Kind:
    return next(one.kind for one in found.inputs if one.name == name)


def _option(name: str) -> str:
    return f"--{name}"


def _inputs(kind: Kind, *names: str) -> Iterable[Input]:
    return (Input(name, kind) for name in names)


_METAVARS: Mapping[Kind, str] = {
    "amount": "NUMBER",
    "positive": "NUMBER",
    "count": "COUNT",
    "percent": "PERCENT",
    "part": "PERCENT",
    "text": "TEXT",
}
_MONTH, _YEAR = f"{HOURS_PER_MONTH:f}", f"{HOURS_PER_YEAR:f}"
_PRICE = Input("per-hour", "amount")
CALCULATORS = (
    Calculator(
        "idle",
        "What the part of a GPU's memory that is not used costs",
        (Input("memory-gb", "positive"), Input("used-gb", "amount"), _PRICE, Input("utilisation", "percent", "", True)),
        _idle,
    ),
    Calculator(
        "mig",
        "Services in MIG instances instead of a GPU for each",
        (*_inputs("count", "services", "slices"), _PRICE, Input("hours", "positive", _MONTH)),
        _mig,
    ),
    Calculator(
        "slice",
        "The smallest MIG instance that holds what is used",
        (
            Input("gpu", "text"),
            Input("used-gb", "amount"),
            Input("activity", "percent", "", True),
            Input("utilisation", "percent", "", True),
        ),
        _slice,
    ),
    Calculator(
        "spot", "GPU-hours at the spot price", tuple(_inputs("amount", "gpu-hours", "on-demand", "spot")), _spot
    ),
    Calculator(
        "consolidation",
        "Fewer GPUs in the hours off peak",
        (*_inputs("count", "gpus", "fewer"), Input("hours-per-day", "amount"), _PRICE, Input("days", "count", "30")),
        _consolidation,
    ),
    Calculator(
        "reservation",
        "Nodes that are reserved",
        (Input("nodes", "count"), *_inputs("amount", "on-demand", "reserved"), Input("hours", "positive", _YEAR)),
        _reservation,
    ),
    Calculator(
        "commitment",
        "How many nodes to commit to, from a load",
        (Input("load", "text"), *_inputs("amount", "committed", "on-demand")),
        _commitment,
    ),
    Calculator(
        "chargeback",
        "What teams pay, by request or by use",
        (Input("held", "text"), _PRICE, Input("charge", "text", "usage")),
        _chargeback,
    ),
    Calculator(
        "waste",
        "What idle GPUs of a fleet cost, and what a higher utilisation saves",
        (
            Input("gpus", "count"),
            _PRICE,
            Input("utilisation", "percent"),
            Input("target", "part"),
            Input("hours", "positive", _YEAR),
        ),
        _waste,
    ),
    Calculator(
        "fleet",
        "What nodes cost, and each of their GPUs",
        (
            Input("nodes", "count"),
            _PRICE,
            Input("gpus-per-node", "count", "1"),
            Input("hours", "positive", _MONTH),
        ),
        _fleet,
    ),
    Calculator(
        "models",
        "An investment per model, with one on each GPU and with more",
        (Input("invested", "amount"), *_inputs("count", "gpus", "models")),
        _models,
    ),
    Calculator("compare", "Two amounts", tuple(_inputs("amount", "before", "after")), _compare),
    Calculator(
        "targets",
        "Which targets are missed, and what that usually means",
        tuple(Input(one.figure, "amount" if _is_wait(one) else "percent", "", True) for one in TARGETS),
        _targets,
    ),
)
