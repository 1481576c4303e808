"""What the pages about history, alerts and proposals get from the code of the commands."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from shoal.api.decode import Document, read
from shoal.cli.cost_source import CostSource
from shoal.cli.object_source import Source
from shoal.cli.web_alerts import FetchedAlerts, RecordedAlerts
from shoal.cli.web_beside import address_of, port_of, web_socket
from shoal.cli.web_history import RecordedHistory
from shoal.cli.what_if import what_if
from shoal.client.clock import WallClock
from shoal.cost.records import DeviceShare, Holder, Holding, Machine, Wait
from shoal.policy.alert_states import RuleAlert
from shoal.store.history.history import open_history
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.sample_blocks import METRICS
from shoal.store.history.samples import DeviceSample
from shoal.store.history.team_budgets import BudgetedNamespace
from shoal.units.calendar_windows import HOUR_MS
from shoal.units.errors import UserError
from shoal.views.what_if import Proposal
from shoal.web.history_answers import CostQuestion
from shoal.web.viewer import OTHERS

START = 1_793_232_000_000
BUDGETS = "budgets: [{team: red, perMonth: '1'}, {namespace: lab, perMonth: '2000'}, {namespace: vault, perMonth: '9'}]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten hours of one p5.48xlarge: four hours of a team of `lab`, two of another team of `vault`, half of it each."""
    devices = tuple(f"g{at}" for at in range(8))
    machine = Machine("p", START, None, "p5.48xlarge", model="H100-SXM5-80GB", devices=devices)
    holdings = {}
    for uid, namespace, team, hours, held in (
        ("u1", "lab", "red", (0, 4), devices[:4]),
        ("u2", "vault", "blue", (4, 6), devices[4:]),
    ):
        holder = Holder(f"{team}-0", namespace, job=f"{team}-job", team=team, queue="main")
        start, end = (START + hour * HOUR_MS for hour in hours)
        holdings[uid] = Holding(holder, "p", start, start, end, tuple(DeviceShare(one) for one in held))
    waits = {uid: Wait(one.holder, one.start_ms - 60_000, one.start_ms, 4) for uid, one in holdings.items()}
    history = open_history(tmp_path / "history")
    history.ledger.write(LedgerChanges(START, {"p": machine}))
    history.ledger.write(LedgerChanges(START + 10 * HOUR_MS, {}, holdings, waits))
    history.close()
    (tmp_path / "prices.yaml").write_text(BUDGETS)
    return tmp_path


def recorded(folder: Path, *, has_budgets: bool = False) -> RecordedHistory:
    prices = folder / "prices.yaml" if has_budgets else None
    return RecordedHistory(CostSource(history=folder / "history", prices=prices), WallClock())


async def test_costs_of_every_viewer_add_up_to_the_same_invoice(folder: Path) -> None:
    history = recorded(folder)
    assert set(await history.namespaces("24h")) == {"lab", "vault"}
    for by in ("team", "namespace", "queue", "job", "model", "node"):
        totals = [(await history.costs(CostQuestion(by, "24h"), seen)).total for seen in (None, frozenset({"lab"}))]
        assert totals == [Decimal("550.40")] * 2, by


async def test_the_pages_say_that_the_server_of_the_samples_is_away(folder: Path) -> None:
    source = CostSource(history=folder / "history", prometheus="http://127.0.0.1:1")
    history = RecordedHistory(source, WallClock())
    costs = await history.costs(CostQuestion("team", "24h"), None)
    assert {name for one in costs.groups if one.group for name in one.classes} == {"allocated-unmeasured"}
    timelines = await history.timelines("24h", None)
    assert [one.name for one in timelines.gangs] == ["vault/blue-job", "lab/red-job"]
    for notes in (costs.notes, timelines.notes):
        assert any("http://127.0.0.1:1 cannot be asked" in one for one in notes)


async def test_a_tenant_finds_its_own_teams_and_the_total_of_all_others(folder: Path) -> None:
    history = recorded(folder)
    everything = await history.costs(CostQuestion("team", "24h"), None)
    mine = await history.costs(CostQuestion("team", "24h"), frozenset({"lab"}))
    assert {one.group for one in everything.groups} == {"red", "blue", ""}
    assert {one.group for one in mine.groups} == {"red", OTHERS, ""}
    amounts = [{one.group.replace(OTHERS, "blue"): one.total for one in found.groups} for found in (everything, mine)]
    assert amounts[0] == amounts[1]
    jobs = await history.costs(CostQuestion("job", "24h"), frozenset({"lab"}))
    assert {one.group for one in jobs.groups} == {"lab/red-job", OTHERS, ""}


async def test_a_tenant_reads_the_budgets_of_its_namespaces_alone(folder: Path) -> None:
    history = recorded(folder, has_budgets=True)
    subjects = [
        [line.subject for line in (await history.costs(CostQuestion("team", "24h"), seen)).budgets]
        for seen in (None, frozenset({"lab"}))
    ]
    assert subjects == [["team red", "namespace lab", "namespace vault"], ["namespace lab"]]


async def test_budgets_of_teams_are_on_the_page_of_those_who_see_all_namespaces(folder: Path) -> None:
    written = open_history(folder / "history")
    annotations = {"shoal.dev/budget-per-month": "50"}
    written.team_budgets.write([BudgetedNamespace("lab", {"shoal.dev/team": "blue"}, annotations)], START)
    written.close()
    history = recorded(folder, has_budgets=True)
    question = CostQuestion("team", "24h")
    shown = [line.subject for line in (await history.costs(question, None)).budgets]
    assert shown == ["team red", "namespace lab", "namespace vault", "team blue"]
    assert [line.subject for line in (await history.costs(question, frozenset({"lab"}))).budgets] == ["namespace lab"]


async def test_a_node_has_its_xid_errors_and_names_the_holders_of_the_viewer_alone(folder: Path) -> None:
    written = open_history(folder / "history")
    for minute, number in ((0, 0), (5, 79), (10, 79)):
        values = [number if one == "xid" else None for one in METRICS]
        written.samples.add(START + 5 * HOUR_MS + minute * 60_000, [DeviceSample("g5", values)])
    written.samples.compact(START + 10 * HOUR_MS)
    written.close()
    history = recorded(folder)
    assert set(await history.node_namespaces("p")) == {"lab", "vault"}
    assert not await history.node_namespaces("other")
    everything = await history.node("p", (), None)
    (xid,) = everything.past.xids
    assert (xid.gpu, xid.number, xid.at_ms, xid.pods) == (5, 79, START + 5 * HOUR_MS + 5 * 60_000, ["vault/blue-0"])
    assert [(one.pod, list(one.gpus)) for one in everything.past.former] == [
        ("vault/blue-0", ["4-7"]),
        ("lab/red-0", ["0-3"]),
    ]
    assert any("the history begins at" in note for note in everything.notes)
    mine = await history.node("p", (), frozenset({"lab"}))
    assert (mine.past.unnamed, mine.past.unnamed_gpu_hours) == (1, 8.0)
    assert mine.past.xids[0].unnamed == 1
    assert "blue" not in msgspec.json.encode(mine).decode()


async def test_timelines_have_the_gangs_of_the_viewer(folder: Path) -> None:
    history = recorded(folder)
    assert set(await history.timeline_namespaces("24h")) == {"lab", "vault"}
    everything = await history.timelines("24h", None)
    assert [one.name for one in everything.gangs] == ["vault/blue-job", "lab/red-job"]
    mine = await history.timelines("24h", frozenset({"lab"}))
    assert [one.name for one in mine.gangs] == ["lab/red-job"]
    assert "blue" not in msgspec.json.encode(mine.gangs).decode() + msgspec.json.encode(mine.uses).decode()


@pytest.mark.parametrize(("by", "window"), [("pod", "24h"), ("label:x", "24h"), ("team", "10y"), ("team", "2020-01")])
async def test_other_dimensions_and_windows_are_not_computed(folder: Path, by: str, window: str) -> None:
    with pytest.raises(UserError, match="the page has no such"):
        await recorded(folder).costs(CostQuestion(by, window), None)


async def test_a_folder_without_a_history_is_a_fault_of_the_page(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no history"):
        await recorded(tmp_path).costs(CostQuestion(), None)


# -- proposals ---------------------------------------------------------------------------------------------------


def objects(*items: dict[str, object]) -> list[Document]:
    return list(read(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})))


def cluster_queue(nominal: int) -> dict[str, object]:
    quota = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": nominal}]}
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [quota]}],
    }
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "gold"}, "spec": spec}


def plain_pod(name: str, gpus: int) -> dict[str, object]:
    container = {"name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def workload(name: str, gpus: int) -> dict[str, object]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    spec = {"queueName": "main", "podSets": [pods]}
    metadata = {"name": name, "namespace": "team"}
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata, "spec": spec}


QUEUES: tuple[dict[str, object], ...] = (
    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "h100"}, "spec": {}},
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "main", "namespace": "team"},
        "spec": {"clusterQueue": "gold"},
    },
)


def test_with_more_nodes_a_pod_that_waits_would_run() -> None:
    found = what_if(Source(objects(plain_pod("p", 8))), Proposal(nodes="1xp5.48xlarge"))
    (change,) = found.pods
    assert change.name == "team/p"
    assert change.now.startswith("waits: ")
    assert change.proposed == "runs on new-p5-48xlarge-0"
    assert (found.added_nodes, found.queues) == (1, None)


def test_with_more_quota_a_workload_would_start() -> None:
    documents = objects(cluster_queue(4), *QUEUES, workload("w", 8))
    proposal = Proposal("gold", "h100", "nvidia.com/gpu", "8", "1xp5.48xlarge")
    found = what_if(Source(documents), proposal)
    assert found.queues is not None
    assert [(one.workload, one.change) for one in found.queues.changes] == [("team/w", "starts")]
    (command,) = found.commands
    assert "kubectl patch clusterqueue gold --type=json" in command
    assert "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota" in command


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (Proposal("silver", "h100", "nvidia.com/gpu", "8"), "no ClusterQueue .silver"),
        (Proposal("gold", "a100", "nvidia.com/gpu", "8"), "has no quota of .nvidia.com/gpu"),
        (Proposal("gold", "h100", "nvidia.com/gpu", "many"), "many"),
        (Proposal("gold", "h100", "nvidia.com/gpu", "-1"), "less than 0"),
        (Proposal(nodes="/etc/passwd.yaml"), "names no machines"),
        (Proposal(nodes="fleet.json"), "names no machines"),
        (Proposal(nodes="9999xp5.48xlarge"), "are too many"),
        (Proposal(nodes="999xp5.48xlarge,2xp5.48xlarge"), "are too many"),
        (Proposal(nodes="p5," * 300), "names no machines"),
        (Proposal(nodes="2xtoaster"), "toaster"),
    ],
)
def test_a_proposal_that_cannot_be_is_refused(proposal: Proposal, words: str) -> None:
    with pytest.raises(UserError, match=words):
        what_if(Source(objects(cluster_queue(4), *QUEUES)), proposal)


# -- alerts ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def answering(answers: dict[str, str]) -> AsyncIterator[str]:
    """A server that has these paths alone."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if request.path not in answers:
            return web.Response(status=404)
        if answers[request.path].startswith("http"):
            return web.Response(status=302, headers={"Location": answers[request.path]})
        return web.Response(text=answers[request.path])

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/api/v1/alerts", '{"data": {"alerts": [{"labels": {"alertname": "A"}}]}}'),
        ("/api/v2/alerts", '[{"labels": {"alertname": "A"}}]'),
    ],
)
async def test_alerts_come_from_a_prometheus_or_an_alertmanager(path: str, answer: str) -> None:
    async with answering({path: answer}) as url:
        found = await FetchedAlerts(url + "/").active()
    assert [one.name for one in found.alerts] == ["A"]
    assert (found.fault, found.source) == ("", url)


async def test_alerts_that_shoal_has_evaluated_itself_come_from_the_history(tmp_path: Path) -> None:
    labels = {"alertname": "GPUXIDError", "severity": "critical", "namespace": "vision"}
    firing = RuleAlert(labels, {"summary": "GPU 0 reports Xid 79"}, "firing", START, 79.0, START)
    pending = RuleAlert({**labels, "alertname": "GPUHighTemperature"}, {}, "pending", START, 90.0)
    history = open_history(tmp_path)
    history.alerts.write([firing, pending], [])
    history.close()
    found = await RecordedAlerts(tmp_path).active()
    assert (found.source, found.fault) == ("Shoal", "")
    assert [(one.name, one.state, one.namespace) for one in found.alerts] == [
        ("GPUXIDError", "firing", "vision"),
        ("GPUHighTemperature", "pending", "vision"),
    ]
    assert found.alerts[0].since == "2026-10-29T00:00:00Z"
    assert "has no history" in (await RecordedAlerts(tmp_path / "none").active()).fault


async def test_a_server_that_has_no_alerts_does_not_answer_or_leads_elsewhere_is_a_fault() -> None:
    async with answering({"/api/v1/alerts": "http://127.0.0.1:9/"}) as url:
        assert "status 302" in (await FetchedAlerts(url).active()).fault
    async with answering({}) as url:
        assert "status 404" in (await FetchedAlerts(url).active()).fault
    async with answering({"/api/v1/alerts": "<html>"}) as url:
        assert "cannot be read" in (await FetchedAlerts(url).active()).fault
    assert (await FetchedAlerts(url).active()).fault


async def test_a_password_in_the_address_is_not_shown() -> None:
    found = await FetchedAlerts("http://me:hidden@127.0.0.1:9").active()
    assert "hidden" not in found.source + found.fault


@pytest.mark.parametrize("url", ["prometheus:9090", "file:///etc/passwd", "http://", "http://x/?y=1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="no address of a server"):
        FetchedAlerts(url)


# -- the port of the pages of `shoal up` ---------------------------------------------------------------------------


def test_where_the_usual_port_is_in_use_a_free_one_is_taken() -> None:
    first, second = web_socket(None), web_socket(None)
    try:
        first.listen()
        with socket.create_connection(("127.0.0.1", port_of(first)), timeout=5):
            assert port_of(second) != port_of(first)
        assert address_of(second) == f"http://127.0.0.1:{port_of(second)}/"
        # Who names a port gets this one or an error.
        with pytest.raises(UserError, match="cannot listen"):
            web_socket(port_of(first))
    finally:
        first.close()
        second.close()
