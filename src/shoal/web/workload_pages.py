"""The pages of workloads: what waits, gangs, what holds GPUs, and one of them with the explanation of `shoal why`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote as quoted

from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardPod,
    GangDetail,
    GangFacts,
    JobDetail,
    PodDetail,
    WorkloadFacts,
)
from shoal.views.dashboard.lists import reason
from shoal.views.dashboard.words import age, amount, plural
from shoal.views.explanation_document import StoryDocument
from shoal.views.job_history import JobSubject
from shoal.web.history_answers import JobHistory
from shoal.web.job_parts import history_notes, history_table, progress_markup, progress_of, progress_table, queue_markup
from shoal.web.markup import Markup, address, element, joined
from shoal.web.page import WebPage
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell, table_markup
from shoal.web.viewer import OTHERS

PATH = "/workloads"
_COMMANDS = frozenset({"would help", "queue alone"})
"""Headings below which commands are printed as well."""


def subject_address(kind: str, namespace: str, name: str) -> str:
    return address(kind, namespace, name)


class WorkloadPages:
    def __init__(self, commands: PageCommands) -> None:
        self._commands = commands

    def page(self, facts: DashboardFacts) -> WebPage:
        tables = [
            self._waiting(facts),
            gangs_table(facts, facts.gangs, self._commands.of("shoal get gangs -A -o wide")),
            self._holders(facts),
        ]
        parts = {"head": element("h1", "Workloads"), **{f"of-{one.key}": table_markup(one, PATH) for one in tables}}
        return WebPage("Workloads", PATH, parts, "workloads", tables)

    def pod(self, facts: DashboardFacts, detail: PodDetail, history: JobHistory) -> WebPage:
        pod = detail.pod
        path = subject_address("pod", pod.namespace, pod.name)
        pairs = [("requests", plural(pod.gpus, "GPU"), ""), ("phase", pod.phase, "")]
        pairs += [("age", age(pod.created, facts.now_s), ""), ("node", pod.node, address("node", pod.node))]
        pairs += [("gang", pod.gang, _two("gang", pod.gang)), ("job", pod.job, _two("job", pod.job))]
        pairs += [("queue", pod.queue, "")]
        headings = [Heading("age"), Heading("reason"), Heading("message")]
        rows = [
            [
                TableCell(age(event.at, facts.now_s)),
                TableCell(event.reason, style="fault" if event.is_warning else ""),
                TableCell(event.message),
            ]
            for event in detail.events
        ]
        command = self._why("pod", pod.namespace, pod.name)
        printed = self._commands.table(path, "events")
        events = DataTable("events", "Events", printed, headings, rows, "No Event of this pod is known.")
        job = _JobParts(JobSubject("pod", pod.namespace, pod.name), history, self._commands)
        progress, tables = job.of_pods([pod], facts.now_s)
        waits = joined((element("h2", "Waits"), element("p", reason(pod, facts.fleet)))) if _waits(pod) else None
        parts = {
            "subject": joined((element("h1", "Pod ", pod.full_name), _pairs(pairs), waits)),
            "progress": progress,
            "why": self.why_part(path, command),
            **job.markup(tables, path),
            "of-events": table_markup(events, path),
        }
        return WebPage(pod.full_name, path, parts, "workloads", [*tables, events])

    def gang(self, facts: DashboardFacts, detail: GangDetail, history: JobHistory) -> WebPage:
        gang = detail.gang
        namespace, _, name = gang.name.partition("/")
        path = subject_address("gang", namespace, name)
        needs = f"{plural(gang.needs, 'pod')} that run together" if gang.needs else ""
        counts = f"{gang.running:,} running, {gang.waiting:,} waiting, on {plural(gang.nodes, 'node')}"
        pairs = [("needs", needs, ""), ("pods", counts, ""), ("requests", plural(gang.gpus, "GPU"), "")]
        pairs += [("queue", gang.queue, "")]
        waits = joined((element("h2", "Waits"), element("p", gang.why))) if gang.why else None
        pods = self._pods(facts, detail.pods, path)
        job = _JobParts(JobSubject("gang", namespace, name), history, self._commands)
        progress, tables = job.of_pods(detail.pods, facts.now_s)
        parts = {
            "subject": joined((element("h1", "Gang ", gang.name), _pairs(pairs), waits)),
            "quota": queue_markup(detail.workload, facts.now_s),
            "progress": progress,
            "why": self.why_part(path, self._why("gang", namespace, name)),
            "of-pods": table_markup(pods, path),
            **job.markup(tables, path),
        }
        return WebPage(gang.name, path, _known(parts), "workloads", [pods, *tables])

    def job(self, facts: DashboardFacts, detail: JobDetail, history: JobHistory) -> WebPage:
        """Of a Job of Kubernetes whose pods name no gang."""
        namespace, name = detail.namespace, detail.name
        path = subject_address("job", namespace, name)
        active = [pod for pod in detail.pods if pod.phase in ("Pending", "Running")]
        pairs = [("pods", plural(len(active), "pod"), ""), ("requests", plural(sum(p.gpus for p in active), "GPU"), "")]
        pods = self._pods(facts, detail.pods, path)
        job = _JobParts(JobSubject("job", namespace, name), history, self._commands)
        progress, tables = job.of_pods(detail.pods, facts.now_s)
        parts = {
            "subject": joined((element("h1", "Job ", f"{namespace}/{name}"), _pairs(pairs))),
            "quota": queue_markup(detail.workload, facts.now_s),
            "progress": progress,
            "why": self.why_part(path, self._why("job", namespace, name)),
            "of-pods": table_markup(pods, path),
            **job.markup(tables, path),
        }
        return WebPage(f"{namespace}/{name}", path, _known(parts), "workloads", [pods, *tables])

    def other(self, subject: JobSubject, history: JobHistory) -> WebPage:
        """Of a Workload and other objects, of which only the explanation and the history are known."""
        kind, namespace, name = subject.kind, subject.namespace, subject.name
        path = subject_address(kind, namespace, name)
        parts = {
            "subject": element("h1", f"{kind.capitalize()} ", f"{namespace}/{name}"),
            "why": self.why_part(path, self._why(kind, namespace, name)),
        }
        job = _JobParts(subject, history, self._commands)
        tables = [] if kind == "workload" else [job.history]
        return WebPage(f"{namespace}/{name}", path, {**parts, **job.markup(tables, path)}, "workloads", tables)

    def _pods(self, facts: DashboardFacts, pods: Sequence[DashboardPod], path: str) -> DataTable:
        headings = [Heading("pod"), Heading("phase"), Heading("GPUs", is_number=True), Heading("age", is_number=True)]
        headings += [Heading("node"), Heading("reason")]
        rows = [
            [
                TableCell(pod.full_name, subject_address("pod", pod.namespace, pod.name)),
                TableCell(pod.phase, style=_phase(pod.phase)),
                TableCell(amount(pod.gpus)),
                TableCell(age(pod.created, facts.now_s)),
                TableCell(pod.node, address("node", pod.node) if pod.node else ""),
                TableCell(reason(pod, facts.fleet) if _waits(pod) else ""),
            ]
            for pod in pods
        ]
        command = self._commands.table(path, "pods")
        return DataTable("pods", "Pods", command, headings, rows, "It has no pods.")

    def why_part(self, path: str, command: str) -> Markup:
        """The place of the explanation, which takes a while to compute and is loaded by the script."""
        link = element("noscript", element("a", "Show the explanation", href=f"{path}?why"))
        code = element("div", element("code", command), _copy(command, "copy command"), class_="copies")
        bar = element("div", element("h2", "Explanation"), code, class_="table-bar")
        loaded = element("div", "Shoal looks for what would help.", link, data_load=f"{path}?why", aria_live="polite")
        return joined((bar, loaded))

    def _why(self, kind: str, namespace: str, name: str) -> str:
        return self._commands.of(f"shoal why {quoted(f'{kind}/{name}')} -n {quoted(namespace)}")

    def _waiting(self, facts: DashboardFacts) -> DataTable:
        headings = [Heading("waiting"), Heading("GPUs", is_number=True), Heading("age", is_number=True)]
        headings += [Heading("queue"), Heading("reason")]
        waiting: list[DashboardPod | WorkloadFacts] = [*facts.waiting, *facts.workloads]
        waiting.sort(key=lambda one: (one.created, one.full_name))
        rows = [
            [
                _waiter(one),
                TableCell(amount(one.gpus)),
                TableCell(age(one.created, facts.now_s)),
                TableCell(one.queue),
                TableCell(reason(one, facts.fleet)),
            ]
            for one in waiting
        ]
        command = self._commands.table(PATH, "waiting")
        return DataTable("waiting", "Waiting", command, headings, rows, "Nothing waits.")

    def _holders(self, facts: DashboardFacts) -> DataTable:
        headings = [Heading("pod"), Heading("GPUs", is_number=True), Heading("use", is_number=True), Heading("node")]
        held: dict[tuple[str, str], tuple[float, int | None]] = {}
        for tile in facts.tiles:
            for slot in (slot for parts in tile.parts for slot in parts if slot.pod):
                key = (slot.pod, tile.node.name)
                held[key] = held.get(key, (0.0, None))[0] + slot.width, slot.load
        rows = [
            [
                TableCell(pod, address("pod", *pod.split("/", 1))),
                TableCell(amount(gpus)),
                TableCell("" if load is None else f"{load} %"),
                TableCell(node, address("node", node)),
            ]
            for (pod, node), (gpus, load) in sorted(held.items())
        ]
        command = self._commands.table(PATH, "holders")
        return DataTable("holders", "Pods that hold GPUs", command, headings, rows, "No pod holds a GPU.")


class _JobParts:
    """What the pages of pods, gangs and Jobs have in common."""

    def __init__(self, subject: JobSubject, history: JobHistory, commands: PageCommands) -> None:
        self._subject, self._commands = subject, commands
        self._history = history
        self.history = history_table(subject, history, commands)

    def of_pods(self, pods: Sequence[DashboardPod], now_s: float) -> tuple[Markup, list[DataTable]]:
        progress = progress_of(pods, now_s)
        subject = self._subject
        command = self._commands.table(subject_address(subject.kind, subject.namespace, subject.name), "progress")
        return progress_markup(progress), [progress_table(progress, command), self.history]

    def markup(self, tables: Sequence[DataTable], path: str) -> dict[str, Markup]:
        found = {f"of-{one.key}": table_markup(one, path) for one in tables}
        return {**found, "history-notes": history_notes(self._history)} if tables else found


def _known(parts: Mapping[str, Markup | None]) -> dict[str, Markup]:
    return {key: markup for key, markup in parts.items() if markup is not None}


def gangs_table(facts: DashboardFacts, gangs: Sequence[GangFacts], command: str) -> DataTable:
    headings = [Heading("gang"), Heading("state"), Heading("needs", is_number=True), Heading("running", is_number=True)]
    headings += [Heading("waiting", is_number=True), Heading("GPUs", is_number=True), Heading("age", is_number=True)]
    headings += [Heading("queue"), Heading("reason")]
    rows = [
        [
            TableCell(gang.name, _two("gang", gang.name)),
            TableCell(_gang_state(gang), style=_phase("Pending" if gang.waiting else "Running")),
            TableCell(f"{gang.needs:,}" if gang.needs else ""),
            TableCell(f"{gang.running:,}"),
            TableCell(f"{gang.waiting:,}"),
            TableCell(amount(gang.gpus)),
            TableCell(age(gang.created, facts.now_s)),
            TableCell(gang.queue),
            TableCell(gang.why),
        ]
        for gang in gangs
    ]
    return DataTable("gangs", "Gangs", command, headings, rows, "The cluster has no gangs.")


def explanation_markup(story: StoryDocument) -> Markup:
    """The chapters of the explanation; commands of remedies can be copied."""
    commands = {command for remedy in story.remedies for command in remedy.commands}
    outcome = f"{story.name} {story.outcome}" + (f" ({story.code})" if story.code else "")
    chapters = []
    for chapter in story.chapters:
        has_commands = chapter.heading in _COMMANDS
        lines = (_line(line, is_command=has_commands and line in commands) for line in chapter.lines)
        chapters += [element("dt", chapter.heading), element("dd", *lines)]
    return joined((element("p", element("strong", outcome)), element("dl", *chapters, class_="why")))


def _line(line: str, *, is_command: bool) -> Markup:
    if not is_command:
        return element("div", line, class_="line")
    return element("div", element("code", line), _copy(line, "copy"), class_="line")


def _copy(command: str, words: str) -> Markup:
    return element("button", words, type="button", data_copy=command)


def _waiter(one: DashboardPod | WorkloadFacts) -> TableCell:
    if isinstance(one, WorkloadFacts):
        name = f"{one.full_name} ({plural(one.pods, 'pod')})"
        return TableCell(name, subject_address("workload", one.namespace, one.name))
    return TableCell(one.full_name, subject_address("pod", one.namespace, one.name))


def _gang_state(gang: GangFacts) -> str:
    if gang.waiting:
        return "waits"
    return "runs" if gang.running else "has no pods"


def _phase(phase: str) -> str:
    return {"Pending": "waits", "Running": "runs", "Failed": "fault"}.get(phase, "")


def _waits(pod: DashboardPod) -> bool:
    return pod.waits and not pod.node


def _pairs(pairs: Sequence[tuple[str, str, str]]) -> Markup:
    """Name, value and address; those without a value are left out."""
    return element(
        "dl",
        *(
            joined((element("dt", name), element("dd", element("a", value, href=href) if href else value)))
            for name, value, href in pairs
            if value
        ),
        class_="pairs",
    )


def _two(kind: str, name: str) -> str:
    return address(kind, *name.split("/", 1)) if name and name != OTHERS else ""
