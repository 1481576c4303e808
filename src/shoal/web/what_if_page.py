"""The page of proposals: another quota, more nodes or another policy, and what would become of workloads and pods,
beside what will.

Nothing is changed in the cluster: the proposal is in the address of the page, so that it can be sent to others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from shoal.engine.profile import POLICIES
from shoal.units.errors import one_line
from shoal.views.dashboard.facts import DashboardFacts
from shoal.views.dashboard.words import plural
from shoal.views.queue_diff import KINDS, QueueChange, fate_words
from shoal.views.what_if import (
    QUEUE_POLICIES,
    PodChange,
    Proposal,
    QueuePolicyChange,
    WhatIfAnswer,
    proposal_command,
)
from shoal.web.markup import Markup, element, joined
from shoal.web.page import WebPage
from shoal.web.permitted_history import Namespaces
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup

PATH = "/what-if"
_LONGEST = 400
_BETWEEN = "|"
"""Between queue, flavor and resource in the value of a choice; no name has it."""
_POLICY_FIELDS = {
    "ordering": "queueingStrategy",
    "within": "preemption.withinClusterQueue",
    "reclaim": "preemption.reclaimWithinCohort",
    "weight": "fairSharing.weight",
}
"""Parameter of the address -> field of the ClusterQueue."""
_LABELS = {
    "queueingStrategy": "Order of its workloads",
    "preemption.withinClusterQueue": "Preemption within it",
    "preemption.reclaimWithinCohort": "Reclaim in the cohort",
    "fairSharing.weight": "Fair sharing weight",
}
_DISCIPLINES = (("kueue", "Kueue"), ("fairshare", "KAI"), ("volcano", "Volcano"))


def proposal_of(query: Mapping[str, str]) -> Proposal:
    """Of an address; what is missing is empty."""
    of, _, _ = query.get("of", "").partition("\n")
    queue, flavor, resource = (*of.split(_BETWEEN, 2), "", "", "")[:3]
    changed = _value(query, "queue")
    values = {field: _value(query, name) for name, field in _POLICY_FIELDS.items()}
    policies = tuple(QueuePolicyChange(changed, field, value) for field, value in values.items() if changed and value)
    quota, nodes, fair, placement, discipline = (
        _value(query, name) for name in ("quota", "nodes", "fair", "placement", "discipline")
    )
    return Proposal(queue, flavor, resource, quota, nodes, policies, fair, placement, discipline)


def what_if_address(proposal: Proposal) -> str:
    if proposal.is_empty:
        return PATH
    of = _BETWEEN.join((proposal.queue, proposal.flavor, proposal.resource))
    words = {"of": of if proposal.quota else "", "quota": proposal.quota, "nodes": proposal.nodes}
    words["queue"] = next((one.queue for one in proposal.policies), "")
    words |= {name: _policy_value(proposal, field) for name, field in _POLICY_FIELDS.items()}
    words |= {"fair": proposal.fair_sharing, "placement": proposal.placement, "discipline": proposal.discipline}
    return f"{PATH}?{urlencode({key: value for key, value in words.items() if value})}"


def _value(query: Mapping[str, str], name: str) -> str:
    return one_line(query.get(name, "").strip())[:_LONGEST]


def _policy_value(proposal: Proposal, field: str) -> str:
    return next((one.value for one in proposal.policies if one.field == field), "")


class WhatIfPage:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, facts: DashboardFacts, proposal: Proposal) -> WebPage:
        """The answer takes a while: the script loads it."""
        path = what_if_address(proposal)
        words = "Propose another quota, more nodes or another policy: nothing is changed in the cluster."
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
        command = self._commands.of(proposal_command(proposal))
        tables = [_pods(answer, command)]
        if answer.queues is not None:
            tables.insert(0, _queues(answer, command))
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
    pods = [one.masked(seen) for one in answer.pods if one.namespace in seen]
    hidden += len(answer.pods) - len(pods)
    # Other notes may name objects.
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
    policies = [
        (element("label", _LABELS[field], for_=name), _choice_of(name, field, proposal))
        for name, field in _POLICY_FIELDS.items()
    ]
    queues = [(one.name, one.name) for one in facts.queues if one.kind == "ClusterQueue"]
    changed = next((one.queue for one in proposal.policies), "")
    fair, placed, ruled = proposal.fair_sharing, proposal.placement, proposal.discipline
    groups = (
        ("Quota", [("Quota", "of", of), ("Nominal quota", "quota", _field("quota", proposal.quota, "16"))]),
        ("Nodes", [("Nodes to add", "nodes", _field("nodes", proposal.nodes, "2xp5.48xlarge"))]),
        ("Policy of a queue", [("ClusterQueue", "queue", _choice("queue", queues, changed, "no queue"))]),
        (
            "Policy of the cluster",
            [
                ("Fair sharing", "fair", _choice("fair", [("on", "on"), ("off", "off")], fair)),
                ("Placement", "placement", _choice("placement", [(one, one) for one in POLICIES], placed)),
                ("Queues that decide", "discipline", _choice("discipline", _DISCIPLINES, ruled)),
            ],
        ),
    )
    lines = []
    for legend, rows in groups:
        fields = [element("div", element("label", words, for_=name), box, class_="field") for words, name, box in rows]
        if legend == "Policy of a queue":
            fields += [element("div", *row, class_="field") for row in policies]
        lines.append(element("fieldset", element("legend", legend), *fields))
    return element("form", *lines, element("button", "Compare", type="submit"), action=PATH, method="get")


def _choice_of(name: str, field: str, proposal: Proposal) -> Markup:
    value = _policy_value(proposal, field)
    choices = QUEUE_POLICIES[field]
    return _choice(name, [(one, one) for one in choices], value) if choices else _field(name, value, "2")


def _choice(name: str, choices: Sequence[tuple[str, str]], chosen: str, empty: str = "as now") -> Markup:
    options = [element("option", words, value=value, selected=value == chosen) for value, words in choices]
    return element("select", element("option", empty, value=""), *options, id=name, name=name)


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
    commands = []
    for command in answer.commands:
        copy = element("button", "copy command", type="button", data_copy=command)
        commands.append(element("p", "To change it: ", element("code", command), " ", copy))
    notes = (element("p", note, class_="empty") for note in answer.notes)
    return joined((element("h2", "Answer"), *(element("p", line) for line in lines), *commands, *notes))


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
