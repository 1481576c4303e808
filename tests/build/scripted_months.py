"""Random months of a small fleet, told step by step, and what each step costs by the simplest possible rules.

The truth walks over steps of a fixed length and asks for each device who has it. It shares no code with the accounting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random

import msgspec

from shoal.cost.price_curves import PriceCurve
from shoal.cost.records import (
    FULL_SHARE,
    PPM,
    BrokenDevice,
    DeviceShare,
    Holder,
    Holding,
    Machine,
    MachineCondition,
    Records,
    Span,
    Use,
    WantedRequest,
)

STEP_MS = 3_600_000 * 2
STEPS = 360
TEAMS = ("red", "green", "blue")
_SHARES = (1, 2, 7, 8)


class ScriptedMonth(msgspec.Struct, frozen=True):
    records: Records
    curves: dict[str, PriceCurve]
    rates: dict[str, list[Decimal]]
    """Per hour, of each machine and step."""


def scripted_month(seed: int) -> ScriptedMonth:
    draw = Random(seed)
    machines, holdings, rates = [], list[Holding](), dict[str, list[Decimal]]()
    for number in range(draw.randint(1, 3)):
        machine = _machine(draw, f"m{number}")
        machines.append(machine)
        holdings += _holdings(draw, machine)
        changes = sorted(draw.sample(range(1, STEPS), draw.randint(0, 4)))
        price, priced = Decimal(draw.randint(1, 9832)) / 100, []
        for step in range(STEPS):
            if step in changes:
                price = Decimal(draw.randint(1, 9832)) / 100
            priced.append(price)
        rates[machine.name] = priced
    wanted = tuple(_wanted(draw) for _ in range(draw.randint(0, 3)))
    gaps = tuple(Span(*_interval(draw, 20)) for _ in range(draw.randint(0, 2)))
    curves = {name: PriceCurve((at * STEP_MS, rate) for at, rate in enumerate(of)) for name, of in rates.items()}
    return ScriptedMonth(Records(tuple(machines), tuple(holdings), wanted, gaps), curves, rates)


def truth(month: ScriptedMonth) -> tuple[Counter[tuple[str, str]], Fraction]:
    """The cost of GPUs by team and class, and the invoice."""
    found: Counter[tuple[str, str]] = Counter()
    invoice = Fraction(0)
    for machine in month.records.machines:
        for step in range(STEPS):
            at = step * STEP_MS
            if not _in(at, machine.start_ms, machine.end_ms):
                continue
            cost = Fraction(month.rates[machine.name][step]) * STEP_MS / 3_600_000
            invoice += cost
            for device, parts in _devices(month.records, machine, at):
                for team, kind, part in parts:
                    found[team, kind] += cost * part / len(machine.devices)  # type: ignore[assignment]
                assert sum(part for _, _, part in parts) == 1, (machine.name, device, step, parts)
    return found, invoice


def _devices(records: Records, machine: Machine, at: int) -> Iterator[tuple[str, list[tuple[str, str, Fraction]]]]:
    states = [one.condition for one in machine.conditions if _in(at, one.start_ms, one.end_ms)]
    here = [one for one in records.holdings if one.machine == machine.name and _in(at, one.start_ms, one.end_ms)]
    free = {
        device: 1
        - sum((Fraction(d.share, FULL_SHARE) for one in here for d in one.devices if d.device == device), Fraction(0))
        for device in machine.devices
    }
    broken = {one.device for one in machine.broken if _in(at, one.start_ms, one.end_ms)}
    blind = any(_in(at, gap.start_ms, gap.end_ms) for gap in records.gaps)
    asked = [one for one in records.wanted if _in(at, one.start_ms or 0, one.end_ms)]
    empty = sum(1 for device in machine.devices if free[device] == 1 and device not in broken)
    for device in machine.devices:
        if states:
            yield device, [("", "overhead" if states[0] == "booting" else "unhealthy", Fraction(1))]
        elif device in broken:
            yield device, [("", "unhealthy", Fraction(1))]
        else:
            parts = [
                part
                for one in here
                for held in one.devices
                if held.device == device
                for part in _parts(one, Fraction(held.share, FULL_SHARE), at)
            ]
            left = Fraction(free[device])
            fits = not asked or any(
                (one.gpus and one.gpus <= empty and left == 1)
                or (not one.gpus and one.share and Fraction(one.share, FULL_SHARE) <= left)
                for one in asked
            )
            kind = "unknown" if blind else "unallocated" if fits else "fragmented"
            yield device, [*parts, ("", kind, left)]


def _parts(one: Holding, share: Fraction, at: int) -> list[tuple[str, str, Fraction]]:
    team = one.holder.team
    if one.holder.is_overhead:
        return [(team, "overhead", share)]
    if one.running_ms is None or at < one.running_ms:
        return [(team, "startup", share)]
    for use in one.uses:
        if _in(at, use.start_ms, use.end_ms):
            active = Fraction(use.active_ppm, PPM)
            return [(team, "allocated-active", share * active), (team, "allocated-idle", share * (1 - active))]
    return [(team, "allocated-unmeasured", share)]


def _machine(draw: Random, name: str) -> Machine:
    devices = tuple(f"{name}-g{at}" for at in range(draw.choice((1, 2, 4))))
    start, end = (0, None) if draw.random() < 0.5 else _interval(draw, STEPS)
    conditions, at = [], start // STEP_MS
    if draw.random() < 0.7:
        conditions.append(MachineCondition("booting", start, start + STEP_MS))
        at += 1
    for _ in range(draw.randint(0, 2)):
        at += draw.randint(1, 100)
        length = draw.randint(1, 20)
        conditions.append(MachineCondition("not-ready", at * STEP_MS, (at + length) * STEP_MS))
        at += length
    broken = [BrokenDevice(draw.choice(devices), *_interval(draw, 60)) for _ in range(draw.randint(0, 2))]
    return Machine(name, start, end, devices=devices, model="none", conditions=tuple(conditions), broken=tuple(broken))


def _holdings(draw: Random, machine: Machine) -> Iterator[Holding]:
    """Each device is handed on from pod to pod, whole or in equal shares, so that no two overlap."""
    for device in machine.devices:
        step = draw.randint(0, 60)
        while step < STEPS:
            parts, length = draw.choice(_SHARES), draw.randint(1, 90)
            for number in range(draw.randint(1, parts)):
                start = step + draw.randint(0, length - 1)
                end = draw.randint(start + 1, step + length)
                yield _holding(draw, machine, (device, FULL_SHARE // parts), (start, end), f"{device}-{step}-{number}")
            step += length + draw.choice((0, 0, 5, 30))


def _holding(draw: Random, machine: Machine, held: tuple[str, int], steps: tuple[int, int], pod: str) -> Holding:
    start, end = steps
    running = draw.randint(start, end)
    uses, at = [], running
    while at < end and draw.random() < 0.8:
        length = draw.randint(1, end - at)
        active = draw.choice((0, PPM, draw.randint(0, PPM)))
        uses.append(Use(at * STEP_MS, (at + length) * STEP_MS, active, active // 2))
        at += length
    return Holding(
        Holder(pod, "n", team=draw.choice(TEAMS), is_overhead=draw.random() < 0.05),
        machine.name,
        start * STEP_MS,
        None if running == end else running * STEP_MS,
        None if end >= STEPS else end * STEP_MS,
        (DeviceShare(*held),),
        uses=tuple(uses),
    )


def _wanted(draw: Random) -> WantedRequest:
    is_waiting = draw.random() < 0.7
    start, end = _interval(draw, 100) if is_waiting else (None, None)
    if draw.random() < 0.6:
        return WantedRequest(gpus=draw.choice((1, 2, 4)), start_ms=start, end_ms=end)
    return WantedRequest(share=FULL_SHARE // draw.choice(_SHARES), start_ms=start, end_ms=end)


def _interval(draw: Random, longest: int) -> tuple[int, int]:
    start = draw.randint(0, STEPS - 2)
    return start * STEP_MS, min(STEPS, start + draw.randint(1, longest)) * STEP_MS


def _in(at: int, start: int, end: int | None) -> bool:
    return start <= at and (end is None or at < end)
