"""Every command that a page shows is one that the command line accepts, and prints what the page has."""

from __future__ import annotations

import re
import shlex
from html import unescape
from pathlib import Path

import msgspec
import pytest
import typer

from build.dashboard_facts import node, pod
from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import as_file
from build.queue_manifests import flavor
from build.web_histories import KnownAlerts, KnownHistories
from build.web_sites import KnownReports, StateFacts
from shoal.cli.main import app, main
from shoal.client.clock import WallClock
from shoal.views.dashboard.facts import GroupFacts, PreemptionFacts, QueueFacts, QuotaFacts, WorkloadFacts
from shoal.views.queue_tree import QuotaLine, Tree, TreeNode
from shoal.views.what_if import WhatIfAnswer
from shoal.web.further_pages import FurtherSources
from shoal.web.page import WebPage
from shoal.web.site import Site

PAGES = (
    *("/", "/queues", "/workloads", "/capacity", "/alerts", "/cost", "/timelines", "/node/n-0", "/pod/vision/a"),
    *("/gang/vision/g", "/job/vision/j", "/workload/vision/w", "/queue/ClusterQueue/diff", "/queue/Volcano/v"),
)
MOMENT = "2026-01-01T00:00:00Z"
ODD_HISTORY = "/srv/my history"


def cluster() -> StateFacts:
    facts = StateFacts()
    facts.state.put_node(node("n-0"))
    facts.state.put_pod(msgspec.structs.replace(pod("a", "vision", 3), gang="vision/g"))
    facts.state.put_pod(msgspec.structs.replace(pod("j-0", "vision", 1), job="vision/j"))
    facts.state.gangs.put_group(GroupFacts("vision", "g", 2, "q", ""))
    for kind, name in (("ClusterQueue", "diff"), ("Volcano", "v")):
        facts.state.queues.put_queue(
            QueueFacts(kind, name, "all", (QuotaFacts("nvidia.com/gpu", "h100", 8, 2, 0),), 1, 1)
        )
    facts.state.queues.put_workload(
        WorkloadFacts(
            *("vision", "w", "q", "diff", "job/w", 1, 8, "admitted", "", MOMENT, "2026-01-01T01:00:00Z"),
            preemption=PreemptionFacts("gold", "diff", "InCohortReclamation", MOMENT),
        )
    )
    return facts


def site() -> Site:
    tree = Tree([TreeNode("clusterQueue", "diff", [QuotaLine("h100", "nvidia.com/gpu", 8, 2, 0, 0, 0)])])
    reports = KnownReports(tree)
    reports.answer = WhatIfAnswer(None, (), 0)
    further = FurtherSources(
        KnownHistories(), KnownAlerts(), history_options=("--history", ODD_HISTORY), alerts_from="history"
    )
    return Site(cluster(), reports, None, WallClock(), lambda command: f"{command} --context prod", further)


def accepted(command: str) -> None:
    """Parses without running. Raises click's UsageError for a command that is none."""
    program, *words = shlex.split(command)
    assert program == "shoal", command
    found = typer.main.get_command(app)
    context = found.make_context("shoal", words)
    while rest := [*context._protected_args, *context.args]:
        name, found, rest = found.resolve_command(context, rest)  # type: ignore[attr-defined]
        context = found.make_context(name, rest, parent=context)
        if not hasattr(found, "commands"):
            break


async def test_every_command_of_every_page_is_accepted_by_the_command_line() -> None:
    pages, seen = site(), set()
    for path in PAGES:
        page = await pages.page(path, {}, "")
        assert page.status == 200, path
        seen |= commands_of(page)
    seen |= commands_of(await pages.page("/what-if", {"nodes": "1xp5.48xlarge", "csv": "pods"}, ""))
    for command in sorted(seen):
        accepted(command)
    assert len(seen) > 20
    tables = {word for command in seen for word in shlex.split(command) if "#" in word}
    for address in sorted(tables):
        path, _, key = address.partition("#")
        path, _, query = path.partition("?")
        fields = dict(part.split("=") for part in query.split("&") if part)
        found = (await pages.page(path, {**fields, "csv": key}, "")).table(key)
        assert found is not None, address


def commands_of(page: WebPage) -> set[str]:
    """Those of the tables, and all others that can be copied."""
    text = "".join(page.parts.values())
    found = {unescape(one) for one in re.findall(r'data-copy="([^"]*)"', text)}
    return {one for one in found if one.startswith("shoal")} | {table.command for table in page.tables}


@pytest.mark.parametrize("is_document", [False, True])
async def test_queue_o_wide_prints_the_waits_that_the_page_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_document: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    facts = cluster()
    page = await Site(facts, KnownReports(), None, WallClock()).page("/queues", {}, "")
    waits, reclaims = page.table("waits"), page.table("reclaims")
    assert waits is not None
    assert reclaims is not None
    held = gpu_workload("diff/w", 1, 8, "f", at=MOMENT)
    message = "Preempted to make room; preemptor path: /all/gold; preemptee path: /all/diff"
    held["status"]["conditions"] = [
        {"type": "QuotaReserved", "status": "True", "reason": "r", "lastTransitionTime": "2026-01-01T01:00:00Z"},
        {"type": "Preempted", "status": "False", "reason": "InCohortReclamation", "message": message},
    ]
    queue = as_file(tmp_path, flavor(), *gpu_queue("diff", gpus(8), cohort="all"), held)
    assert main(["queue", "-f", queue, "-o", "json" if is_document else "wide"]) == 0
    out = capsys.readouterr().out
    if is_document:
        document = msgspec.json.decode(out)
        assert document["waits"][0]["p95Seconds"] == 3600
        assert document["waits"][0]["breach"] == "quotas are too small or GPUs are fragmented"
        assert [one["byQueue"] for one in document["preempted"]] == ["gold"]
        return
    printed = [" ".join(line.split()) for line in out.splitlines()]
    for table in (waits, reclaims):
        for row in table.rows:
            assert " ".join(cell.text for cell in row) in printed
