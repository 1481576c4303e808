"""Prints a decision for a terminal: totals first, then placements, then waiting pods.

Rounds are folded into one result, because an operator wants to know the state and not its history. Pods on one node
share a line, and so do pods that wait for one reason. Long lists end in a count; the JSON document has everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from shoal.units.visible_text import visible
from shoal.views.decision import CycleResult, Decision, Device, Evicted, Moved, Placed, Reason, Refused
from shoal.views.enumeration import few
from shoal.views.queue_decision_text import admitted_lines, is_blind, preempted_lines, queue_counts, waiting_lines

MOST_LINES = 20
MOST_REASONS = 8
"""Each takes several lines of the screen."""
_MOST_NAMES = 3
_NAMES_WIDTH = 32


def show(console: Console, decision: Decision) -> None:
    """Print it."""
    rounds = decision.rounds
    last = rounds[-1]
    placed = _placements(rounds)
    evicted = [each for round_ in rounds for each in round_.evicted]
    moved = [each for round_ in rounds for each in round_.moved]
    console.print(_headline(decision, placed, evicted, moved), soft_wrap=True)
    _section(console, "admitted", "green", admitted_lines(decision))
    _section(console, "preempted", "yellow", preempted_lines(decision))
    _section(console, "placed", "green", _placed_lines(placed))
    _section(console, "nominated, until the preempted pods have ended", "cyan", _placed_lines(last.nominated))
    _section(console, "moved", "yellow", _moved_lines(moved))
    _section(console, "evicted", "yellow", _evicted_lines(evicted))
    _section(console, "waiting in queues", "red", waiting_lines(last.waiting), MOST_REASONS)
    if is_blind(decision):
        console.print()
        console.print(
            Text("no nodes are known: where the pods of those admitted run is left open; --nodes names machines", "dim")
        )
    else:
        _section(console, "waiting", "red", _refused_lines(last.refused), MOST_REASONS)


def _placements(rounds: Sequence[CycleResult]) -> list[Placed]:
    """The pods that were placed and have not been evicted since."""
    found: dict[str, Placed] = {}
    for round_ in rounds:
        found.update((each.pod, each) for each in round_.placed)
        for each in round_.evicted:
            found.pop(each.pod, None)
    return list(found.values())


def _headline(decision: Decision, placed: Sequence[Placed], evicted: Sequence[Evicted], moved: Sequence[Moved]) -> Text:
    last = decision.rounds[-1]
    refused = [] if is_blind(decision) else last.refused
    pods = sum(1 for each in refused if each.pod)
    gangs = len(refused) - pods
    counts = [
        *queue_counts(decision),
        (len(placed), "placed", "green"),
        (len(last.nominated), "nominated", "cyan"),
        (len(moved), "moved", "yellow"),
        (len(evicted), "evicted", "yellow"),
        (pods, "waiting", "red"),
        (gangs, "gang waiting" if gangs == 1 else "gangs waiting", "red"),
    ]
    shown = [Text(f"{count:,} {word}", style) for count, word, style in counts if count]
    line = Text(", ").join(shown) if shown else Text("nothing to decide")
    rounds = len(decision.rounds)
    after = f"{rounds:,} round" + ("s" if rounds != 1 else "")
    return line + Text(f" after {after}" if decision.quiet else f" after {after}, not settled yet", "dim")


Line = tuple[str, ...]


def _section(console: Console, title: str, style: str, lines: Sequence[Line], most: int = MOST_LINES) -> None:
    if not lines:
        return
    console.print()
    console.print(Text(title, f"bold {style}"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    wide = len(lines[0]) > 2 or most == MOST_LINES
    for number in range(len(lines[0])):
        # Names are what people copy and stay whole, but where a sentence follows they leave it some room.
        is_name = number == 0 and len(lines[0]) > 1
        stays = number == 1 if len(lines[0]) > 2 else is_name
        table.add_column(
            no_wrap=stays and wide, max_width=None if wide or not is_name else _NAMES_WIDTH, overflow="fold"
        )
    for line in islice(lines, most):
        table.add_row(*(Text(visible(cell)) for cell in line))
    console.print(Padding(table, (0, 0, 0, 2)))
    if len(lines) > most:
        console.print(Text(f"  and {len(lines) - most:,} more; --json has them all", "dim"))


def _placed_lines(placed: Iterable[Placed]) -> list[Line]:
    by_node: dict[str, list[Placed]] = {}
    for each in placed:
        by_node.setdefault(each.node, []).append(each)
    return [
        (few([each.pod for each in pods], _MOST_NAMES), f"on {node}", _devices(pods))
        for node, pods in sorted(by_node.items())
    ]


def _devices(pods: Sequence[Placed]) -> str:
    return device_words([device for each in pods for device in each.devices])


def device_words(devices: Iterable[Device]) -> str:
    """GPUs by number; devices with names of their own as they are."""
    taken = list(dict.fromkeys(devices))
    numbers = sorted(device for device in taken if isinstance(device, int))
    named = [device for device in taken if isinstance(device, str)]
    numbered = f"GPU {', '.join(map(str, numbers))}" if numbers else ""
    return ", ".join([*([numbered] if numbered else []), *named])


def _moved_lines(moved: Iterable[Moved]) -> list[Line]:
    return [(each.pod, f"{each.source} -> {each.target}") for each in moved]


def _evicted_lines(evicted: Iterable[Evicted]) -> list[Line]:
    by_cause: dict[tuple[str, str], list[str]] = {}
    for each in evicted:
        by_cause.setdefault((each.beneficiary, each.reason), []).append(each.pod)
    return [
        (few(pods, _MOST_NAMES), f"for {cause} ({reason})" if cause else f"({reason})")
        for (cause, reason), pods in by_cause.items()
    ]


def _refused_lines(refused: Iterable[Refused]) -> list[Line]:
    by_reason: dict[tuple[str, Reason], list[str]] = {}
    for each in refused:
        kind = "gang " if each.group else ""
        by_reason.setdefault((kind, each.reason), []).append(each.name)
    return [
        (kind + few(pods, _MOST_NAMES), f"{reason.code}: {reason.message} {reason.help}".rstrip())
        for (kind, reason), pods in sorted(by_reason.items(), key=lambda item: -len(item[1]))
    ]
