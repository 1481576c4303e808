"""The page of costs: what every team, namespace, queue, job, model or node cost in a window, by class, and budgets."""

from __future__ import annotations

from decimal import Decimal
from shlex import quote as quoted
from urllib.parse import urlencode

from shoal.cost.prices.machine_prices import missing_note
from shoal.cost.report import GroupTotal
from shoal.units.calendar_windows import rfc3339
from shoal.views.cost_advice import ENFORCED
from shoal.views.cost_tables import ABOUT_CLASSES, OF_GROUPS
from shoal.web.history_answers import DIMENSIONS, WINDOWS, CostAnswer, CostQuestion
from shoal.web.markup import Markup, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.viewer import OTHERS

PATH = "/cost"
_WIDTH = 160.0
_OF_NODES = "node"
_BUDGET_STYLES = {"kept": "runs", "at risk": "waits", "exceeded": "fault"}


def cost_address(question: CostQuestion) -> str:
    return f"{PATH}?{urlencode({'by': question.by, 'window': question.window})}"


class CostPage:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, question: CostQuestion, answer: CostAnswer, *, lists_nodes: bool) -> WebPage:
        path = cost_address(question)
        tables = [self._groups(question, answer), self._others(question, answer)]
        if answer.budgets:
            tables.append(self._budgets(answer))
        parts = {
            "head": joined((element("h1", "Cost"), choices(question, lists_nodes=lists_nodes))),
            "summary": _summary(answer, lists_nodes=lists_nodes),
            **{f"of-{one.key}": table_markup(one, path) for one in tables},
        }
        return WebPage("Cost", path, parts, "cost", tables)

    def fault(self, question: CostQuestion, fault: str, *, lists_nodes: bool) -> WebPage:
        """`fault`: why there are no figures, and what to do."""
        head = joined((element("h1", "Cost"), choices(question, lists_nodes=lists_nodes)))
        parts = {"head": head, "fault": element("p", fault, class_="fault")}
        return WebPage("Cost", cost_address(question), parts, "cost")

    def _command(self, question: CostQuestion) -> str:
        return self._commands.of_history(f"shoal cost --by {quoted(question.by)} --window {quoted(question.window)}")

    def _groups(self, question: CostQuestion, answer: CostAnswer) -> DataTable:
        named = [group for group in answer.groups if group.group]
        kinds = [kind for kind in OF_GROUPS if any(group.classes.get(kind) for group in named)]
        headings = [Heading(question.by), Heading("classes"), Heading("GPU hours", is_number=True)]
        headings += [Heading(OF_GROUPS[kind], is_number=True) for kind in kinds]
        headings += [Heading(answer.currency, is_number=True), Heading("share", is_number=True)]
        most = max((group.total for group in named), default=Decimal(0))
        rows = [
            [
                TableCell(group.group),
                TableCell(_classes(group), drawing=_bar(group, most)),
                TableCell(f"{group.gpu_hours:,.1f}"),
                *(TableCell(_amount(group.classes.get(kind))) for kind in kinds),
                TableCell(f"{group.total:,.2f}"),
                TableCell(f"{group.total / answer.total:.1%}" if answer.total else ""),
            ]
            for group in named
        ]
        empty = "Nothing was held in this window."
        return DataTable("groups", f"Cost by {question.by}", self._command(question), headings, rows, empty)

    def _others(self, question: CostQuestion, answer: CostAnswer) -> DataTable:
        headings = [Heading("class"), Heading(answer.currency, is_number=True), Heading("what it is")]
        rows = [
            [TableCell(kind), TableCell(f"{amount:,.2f}"), TableCell(ABOUT_CLASSES.get(kind, "without this value"))]
            for group in answer.groups
            if not group.group
            for kind, amount in group.classes.items()
            if amount
        ]
        return DataTable(
            "others", "What no group had", self._command(question), headings, rows, "All of it was of groups."
        )

    def _budgets(self, answer: CostAnswer) -> DataTable:
        names = [(f"spent {answer.currency}", True), ("whole month", True), ("limit", True), ("state", False)]
        names.append(("new work waits", False))
        rows = [
            [
                TableCell(line.subject),
                *(TableCell(f"{amount:,.2f}") for amount in (line.spent, line.forecast, line.limit)),
                TableCell(line.state, style=_BUDGET_STYLES[line.state]),
                TableCell(ENFORCED[line.enforce]),
            ]
            for line in answer.budgets
        ]
        headings = [Heading("budget"), *(Heading(*name) for name in names)]
        command = self._commands.of_history("shoal cost budget")
        return DataTable("budgets", "Budgets of this month", command, headings, rows, "There are no budgets.")


def choices(question: CostQuestion, *, lists_nodes: bool) -> Markup:
    """Links to the other dimensions and windows."""
    by = [one for one in DIMENSIONS if lists_nodes or one != _OF_NODES]
    lines = (
        ("by", [(one, CostQuestion(one, question.window), one == question.by) for one in by]),
        ("window", [(one, CostQuestion(question.by, one), one == question.window) for one in WINDOWS]),
    )
    return joined(
        element(
            "nav",
            element("span", words),
            *(
                element("a", name, href=cost_address(asked), aria_current="true" if is_chosen else None)
                for name, asked, is_chosen in entries
            ),
            class_="choices",
            aria_label=f"Costs, {words}",
        )
        for words, entries in lines
    )


def _summary(answer: CostAnswer, *, lists_nodes: bool) -> Markup:
    total = answer.total
    sums: dict[str, Decimal] = {}
    for group in answer.groups:
        for kind, amount in group.classes.items():
            sums[kind] = sums.get(kind, Decimal(0)) + amount
    shown = [
        ("partial total" if answer.missing else "total", total),
        *((kind, amount) for kind, amount in sums.items() if amount),
    ]
    figures = [
        element("div", element("strong", f"{amount:,.2f}"), element("span", f"{kind} {answer.currency}"))
        for kind, amount in shown
    ]
    missing = missing_note(answer.missing, names_nodes=lists_nodes)
    notes = [element("p", missing, class_="fault")] if missing else []
    notes += [element("p", note, class_="waits") for note in answer.notes]
    window = element("p", f"{rfc3339(answer.start_ms)} to {rfc3339(answer.end_ms)}", class_="empty")
    return joined((window, element("div", *figures, class_="figures"), *notes))


def _amount(amount: Decimal | None) -> str:
    return f"{amount:,.2f}" if amount else ""


def _classes(group: GroupTotal) -> str:
    return ", ".join(f"{kind} {amount:,.2f}" for kind, amount in group.classes.items() if amount)


def _bar(group: GroupTotal, most: Decimal) -> Markup:
    x, parts = 0.0, []
    for kind, amount in group.classes.items():
        width = _WIDTH * float(amount / most) if most and amount > 0 else 0.0
        if width:
            parts.append(element("rect", x=f"{x:.4g}", y=0, width=f"{width:.4g}", height=10, class_=f"c-{kind}"))
            x += width
    return element("svg", *parts, width=_WIDTH, height=10, role="img", aria_label=_classes(group) or "nothing")


def without_namespace(group: str) -> str:
    """The jobs and pods of other namespaces are one group."""
    return OTHERS if group.startswith(f"{OTHERS}/") else group
