"""The page of proposals: another quota or more nodes, and what would become of workloads and pods, beside what will.

Nothing is changed in the cluster: the proposal is in the address of the page, so that it can be sent to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from shoal.units.errors import one_line
from shoal.views.dashboard.facts import DashboardFacts
from shoal.views.dashboard.words import plural
from shoal.views.queue_diff import KINDS, QueueChange, fate_words
from shoal.views.what_if import PodChange, Proposal, WhatIfAnswer
from shoal.web.markup import Markup, element, joined
from shoal.web.page import WebPage
from shoal.web.permitted_history import Namespaces
from shoal.web.ports import Addressing
from shoal.web.tables import DataTable, Heading, TableCell, table_markup

PATH = "/what-if"
_LONGEST = 400
_BETWEEN = "|"
"""Between queue, flavor and resource in the value of a choice; no name has it."""
_SNAPSHOT = "shoal snapshot --file now.json"
_DIFF, _DECIDE = "shoal queue diff -f now.json -f proposed.yaml", "shoal decide -f now.json -f more-nodes.yaml"


def proposal_of(query: Mapping[str, str]) -> Proposal:
    """Of an address; what is missing is empty."""
    of, _, _ = query.get("of", "").partition("\n")
    queue, flavor, resource = (*of.split(_BETWEEN, 2), "", "", "")[:3]
    quota, nodes = (one_line(query.get(name, "").strip())[:_LONGEST] for name in ("quota", "nodes"))
    return Proposal(queue, flavor, resource, quota, nodes)


def what_if_address(proposal: Proposal) -> str:
    if proposal.is_empty:
        return PATH
    of = _BETWEEN.join((proposal.queue, proposal.flavor, proposal.resource))
    words = {"of": of if proposal.quota else "", "quota": proposal.quota, "nodes": proposal.nodes}
    return f"{PATH}?{urlencode({key: value for key, value in words.items() if value})}"


class WhatIfPage:
    def __init__(self, addressed: Addressing) -> None:
        self._addressed = addressed

    def page(self, facts: DashboardFacts, proposal: Proposal) -> WebPage:
        """The answer takes a while: the script loads it."""
        path = what_if_address(proposal)
        words = "Change a quota, add nodes, or both: nothing is changed in the cluster."
        head = joined((element("h1", "What if"), element("p", words), _form(facts, proposal)))
        parts = {"head": head}
        if not proposal.is_empty:
            link = element("noscript", element("a", "Show the answer", href=f"{path}&why"))
            parts["why"] = element(
                "div", "Shoal decides for both, which takes a while.", link, data_load=f"{path}&why", aria_live="polite"
            )
        return WebPage("What if", path, parts, "what-if")

    def refusal(self) -> WebPage:
        words = "Your account may not list queues and nodes, so nothing can be proposed for them."
        return WebPage("What if", PATH, {"head": joined((element("h1", "What if"), element("p", words)))}, "what-if")

    def answered(self, proposal: Proposal, answer: WhatIfAnswer) -> WebPage:
        """The page of the answer alone, for the script and for CSV."""
        path = what_if_address(proposal)
        snapshot = self._addressed(_SNAPSHOT)
        tables = [_pods(answer, f"{snapshot} && {_DECIDE}")]
        if answer.queues is not None:
            tables.insert(0, _queues(answer, f"{snapshot} && {_DIFF}"))
        parts = {"summary": _summary(answer), **{f"of-{one.key}": table_markup(one, path) for one in tables}}
        return WebPage("What if", path, parts, "what-if", tables)


def permitted_answer(answer: WhatIfAnswer, seen: Namespaces) -> WhatIfAnswer:
    """Workloads and pods of other namespaces are counted, and not named."""
    if seen is None:
        return answer
    queues = answer.queues
    if queues is not None:
        changes = [_permitted(one, seen) for one in queues.changes if _namespace(one.workload) in seen]
        queues = msgspec.structs.replace(
            queues,
            changes=changes,
            only_now=[one for one in queues.only_now if _namespace(one) in seen],
            only_proposed=[one for one in queues.only_proposed if _namespace(one) in seen],
        )
    hidden = len(answer.queues.changes) - len(queues.changes) if answer.queues and queues else 0
    pods = [one for one in answer.pods if one.namespace in seen]
    hidden += len(answer.pods) - len(pods)
    notes = [f"{hidden:,} other changes are in namespaces that your account may not list"] if hidden else []
    return msgspec.structs.replace(answer, queues=queues, pods=pods, notes=notes)


def _permitted(change: QueueChange, seen: frozenset[str]) -> QueueChange:
    """Who a workload gives way to may be of another namespace."""
    fates = []
    for fate in (change.now, change.proposed):
        stops = [
            stop
            if not stop.beneficiary or _namespace(stop.beneficiary) in seen
            else msgspec.structs.replace(stop, beneficiary="a workload of another namespace")
            for stop in fate.stops
        ]
        fates.append(msgspec.structs.replace(fate, stops=stops))
    return msgspec.structs.replace(change, now=fates[0], proposed=fates[1])


def _namespace(name: str) -> str:
    return name.partition("/")[0]


def _form(facts: DashboardFacts, proposal: Proposal) -> Markup:
    chosen = (proposal.queue, proposal.flavor, proposal.resource)
    options = [
        element(
            "option",
            f"{queue} / {flavor} / {resource} ({quota:g} now)",
            value=_BETWEEN.join((queue, flavor, resource)),
            selected=(queue, flavor, resource) == chosen,
        )
        for queue, flavor, resource, quota in _quotas(facts)
    ]
    of = element("select", element("option", "no quota", value=""), *options, id="of", name="of")
    quota = _field("quota", proposal.quota, "16")
    nodes = _field("nodes", proposal.nodes, "2xp5.48xlarge")
    rows = (
        (element("label", "Quota", for_="of"), of),
        (element("label", "Nominal quota", for_="quota"), quota),
        (element("label", "Nodes to add", for_="nodes"), nodes),
    )
    lines = (element("div", *row, class_="field") for row in rows)
    return element("form", *lines, element("button", "Compare", type="submit"), action=PATH, method="get")


def _field(name: str, value: str, example: str) -> Markup:
    return element(
        "input", id=name, name=name, value=value, placeholder=example, maxlength=_LONGEST, autocomplete="off"
    )


def _quotas(facts: DashboardFacts) -> Iterator[tuple[str, str, str, float]]:
    for queue in facts.queues:
        if queue.kind == "ClusterQueue":
            for quota in queue.quotas:
                yield queue.name, quota.flavor, quota.resource, quota.nominal or 0.0


def _summary(answer: WhatIfAnswer) -> Markup:
    lines = []
    if answer.added_nodes:
        lines.append(f"With {plural(answer.added_nodes, 'more node')}:")
    if answer.queues is not None:
        counts = [(kind, sum(1 for one in answer.queues.changes if one.change == kind)) for kind in KINDS]
        told = [f"{count:,} {KINDS[kind][0]}" for kind, count in counts if count]
        lines.append("workloads: " + ", ".join([*told, f"{answer.queues.unchanged:,} as before"]))
        if not answer.queues.complete:
            lines.append("The comparison of queues was cut short: too much happens in it.")
    lines.append(f"waiting pods: {len(answer.pods):,} with another outcome, {answer.unchanged:,} as before")
    command = None
    if answer.command:
        copy = element("button", "copy command", type="button", data_copy=answer.command)
        command = element("p", "To change it: ", element("code", answer.command), " ", copy)
    notes = (element("p", note, class_="empty") for note in answer.notes)
    return joined((element("h2", "Answer"), *(element("p", line) for line in lines), command, *notes))


def _queues(answer: WhatIfAnswer, command: str) -> DataTable:
    changes: Sequence[QueueChange] = () if answer.queues is None else answer.queues.changes
    rank = {kind: number for number, kind in enumerate(KINDS)}
    rows = [
        [
            TableCell(one.workload),
            TableCell(one.queue),
            TableCell(KINDS[one.change][0], style="runs" if KINDS[one.change][1] == "green" else "fault"),
            TableCell(fate_words(one.now)),
            TableCell(fate_words(one.proposed)),
        ]
        for one in sorted(changes, key=lambda each: (rank[each.change], each.workload))
    ]
    headings = [Heading(name) for name in ("workload", "queue", "change", "now", "proposed")]
    return DataTable("workloads", "Workloads", command, headings, rows, "No workload would fare differently.")


def _pods(answer: WhatIfAnswer, command: str) -> DataTable:
    pods: Sequence[PodChange] = answer.pods
    headings = [Heading(name) for name in ("pod or gang", "now", "proposed")]
    rows = [[TableCell(one.name), TableCell(one.now), TableCell(one.proposed)] for one in pods]
    empty = "No pod that waits would fare differently."
    return DataTable("pods", "Pods", command, headings, rows, empty)
