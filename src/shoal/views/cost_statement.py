"""A statement of costs as one HTML page for a screen and for paper: no scripts, nothing from other servers.

Names in it come from users of the cluster, and are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, tzinfo
from decimal import Decimal
from html import escape

import msgspec

from shoal.cost.day_totals import PAID_FOR, DayTotal
from shoal.cost.report import GroupTotal
from shoal.units.calendar_windows import HOUR_MS, TimeWindow, month_window
from shoal.units.visible_text import visible
from shoal.views.cost_tables import ABOUT_CLASSES, OF_GROUPS

_MOST_GROUPS = 30
_WIDTH, _HEIGHT, _FOOT = 960, 150, 18
_COLOURS = {"held": "#1f6f5c", "idle": "#d08c00", "not held": "#8c959f", "unknown": "#d8dee4"}
_STYLE = """
:root { color-scheme: light; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1b1f24; background: #fff; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p { margin: .3rem 0; } .about { color: #57606a; }
.total { font-size: 2rem; font-weight: 600; margin: .8rem 0 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .5rem; border-bottom: 1px solid #d0d7de; vertical-align: top; }
th.n, td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.name { overflow-wrap: anywhere; }
tr.sum td, tr.sum th { border-top: 2px solid #1b1f24; border-bottom: 0; font-weight: 600; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
svg { width: 100%; height: auto; } svg text { font: 11px system-ui, sans-serif; fill: #57606a; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border: 1px solid #57606a; }
@page { size: A4; margin: 14mm; }
@media print { body { margin: 0; max-width: none; font-size: 10px; } h1 { font-size: 18px; } .total { font-size: 20px; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } tr, svg { break-inside: avoid; } }
""".strip()


class CostStatement(msgspec.Struct, frozen=True):
    window: TimeWindow
    zone: tzinfo
    zone_name: str
    by: str
    currency: str
    groups: Sequence[GroupTotal]
    """In cents; they add up to the invoice."""
    days: Sequence[tuple[int, date]]
    """When the days begin."""
    of_days: Sequence[DayTotal]
    unknown_hours: Decimal
    notes: Sequence[str]

    @property
    def total(self) -> Decimal:
        return sum((group.total for group in self.groups), Decimal(0))


def statement_html(found: CostStatement) -> str:
    title = f"GPU costs, {_period(found)}"
    start, end = (_moment(ms, found.zone) for ms in found.window)
    unknown = f"{found.unknown_hours:,.1f} hours of the period were not recorded: what was free then is unknown."
    notes = [*([unknown] if found.unknown_hours else []), *found.notes]
    parts = [
        f"<h1>{_shown(title)}</h1>",
        f'<p class="about">{_shown(f"{start} until {end}, time zone {found.zone_name}")}</p>',
        f'<p class="total">{found.total:,.2f} {_shown(found.currency)}</p>',
        "<h2>Days</h2>",
        _chart(found),
        f"<h2>By {_shown(found.by)}</h2>",
        _groups(found),
        "<h2>What no pod had, and other costs</h2>",
        _others(found),
    ]
    if notes:
        parts += ["<h2>Notes</h2>", f"<ul>{''.join(f'<li>{_shown(note)}</li>' for note in notes)}</ul>"]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{_shown(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def _period(found: CostStatement) -> str:
    first = datetime.fromtimestamp(found.window.start_ms / 1000, found.zone)
    if month_window(first.year, first.month, found.zone) == found.window:
        return f"{first:%B %Y}"
    return f"{found.days[0][1]} to {found.days[-1][1]}"


def _moment(ms: int, zone: tzinfo) -> str:
    return datetime.fromtimestamp(ms / 1000, zone).isoformat(sep=" ", timespec="minutes")


def _groups(found: CostStatement) -> str:
    named = [group for group in found.groups if group.group]
    if not named:
        return "<p>No pod had a value of this kind.</p>"
    kinds = [kind for kind in OF_GROUPS if any(group.classes.get(kind) for group in named)]
    shown, rest = named[:_MOST_GROUPS], named[_MOST_GROUPS:]
    lines = [_group_row(found, group, kinds) for group in shown]
    if rest:
        lines.append(_group_row(found, _joined(rest, f"{len(rest):,} others"), kinds))
    lines.append(_group_row(found, _joined(named, "all"), kinds).replace("<tr>", '<tr class="sum">'))
    headings = "".join(f'<th class="n">{escape(OF_GROUPS[kind])}</th>' for kind in kinds)
    return (
        f'<table>\n<tr><th>{_shown(found.by)}</th><th class="n">GPU hours</th>{headings}'
        f'<th class="n">{_shown(found.currency)}</th><th class="n">share</th></tr>\n' + "\n".join(lines) + "\n</table>"
    )


def _group_row(found: CostStatement, group: GroupTotal, kinds: Sequence[str]) -> str:
    share = f"{group.total / found.total:.1%}" if found.total else ""
    cells = [
        f"{group.gpu_hours:,.1f}",
        *(_amount(group.classes.get(kind, Decimal(0))) for kind in kinds),
        f"{group.total:,.2f}",
        share,
    ]
    return (
        f'<tr><td class="name">{_shown(group.group)}</td>{"".join(f"<td class=n>{cell}</td>" for cell in cells)}</tr>'
    )


def _joined(groups: Sequence[GroupTotal], name: str) -> GroupTotal:
    classes: dict[str, Decimal] = {}
    for group in groups:
        for kind, amount in group.classes.items():
            classes[kind] = classes.get(kind, Decimal(0)) + amount
    hours = sum((group.gpu_hours for group in groups), Decimal(0))
    return GroupTotal(name, hours, sum(classes.values(), Decimal(0)), classes)


def _others(found: CostStatement) -> str:
    lines = [
        f'<tr><td>{_shown(kind)}</td><td class="n">{amount:,.2f}</td>'
        f"<td>{_shown(ABOUT_CLASSES.get(kind, 'held by pods without this value'))}</td></tr>"
        for group in found.groups
        if not group.group
        for kind, amount in group.classes.items()
        if amount
    ]
    lines.append(f'<tr class="sum"><td>total</td><td class="n">{found.total:,.2f}</td><td>the invoice</td></tr>')
    return (
        f'<table>\n<tr><th>class</th><th class="n">{_shown(found.currency)}</th><th></th></tr>\n'
        + "\n".join(lines)
        + "\n</table>"
    )


def _chart(found: CostStatement) -> str:
    """A bar for each day, of its width in time: the day on which clocks change is an hour longer or shorter."""
    most = max((_above(one) for one in found.of_days), default=Decimal(0)) or Decimal(1)
    length = max(1, found.window.length_ms)
    ends = [*(start for start, _ in found.days[1:]), found.window.end_ms]
    bars = []
    for (start, day), end, one in zip(found.days, ends, found.of_days, strict=True):
        left = _WIDTH * (start - found.window.start_ms) / length
        width = _WIDTH * (end - start) / length
        hours = f"{(end - start) / HOUR_MS:g} hours"
        words = ", ".join(f"{kind} {one.amounts[kind]:,.2f}" for kind in PAID_FOR if one.amounts[kind])
        bars.append(f"<g><title>{day} ({hours}): {one.total:,.2f} {_shown(found.currency)}; {words}</title>")
        below = Decimal(0)
        for kind in PAID_FOR:
            amount = one.amounts[kind]
            if amount <= 0:
                continue
            height = float(amount / most) * _HEIGHT
            top = _HEIGHT - float(below / most) * _HEIGHT - height
            bars.append(
                f'<rect x="{left + width * 0.08:.1f}" y="{top:.1f}" width="{width * 0.84:.1f}" '
                f'height="{height:.1f}" fill="{_COLOURS[kind]}"/>'
            )
            below += amount
        if len(found.days) <= 31 or day.day == 1:
            bars.append(f'<text x="{left + width / 2:.1f}" y="{_HEIGHT + 13}" text-anchor="middle">{day.day}</text>')
        bars.append("</g>")
    keys = "".join(
        f'<span class="key" style="background:{_COLOURS[kind]}"></span>{kind}'
        for kind in PAID_FOR
        if any(one.amounts[kind] for one in found.of_days)
    )
    label = f"Nodes on each day, at most {most:,.2f} {found.currency}"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + _FOOT}" role="img" aria-label="{_shown(label)}">\n'
        + "\n".join(bars)
        + f'\n</svg>\n<p class="about">{_shown(label)}:{keys}</p>'
    )


def _above(one: DayTotal) -> Decimal:
    return sum((amount for amount in one.amounts.values() if amount > 0), Decimal(0))


def _amount(amount: Decimal) -> str:
    return f"{amount:,.2f}" if amount else "·"


def _shown(text: str) -> str:
    return escape(visible(text))
