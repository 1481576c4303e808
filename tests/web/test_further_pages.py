"""The pages of costs, timelines, capacity, alerts and proposals, request by request, for viewers of several rights."""

from __future__ import annotations

import asyncio
import re

import aiohttp
import msgspec
import pytest

from build.dashboard_facts import NOW_S, node, pod
from build.web_histories import KnownAlerts, KnownHistories
from build.web_sites import KnownReports, StateFacts, served
from shoal.cost.prices.price_file import PriceFile
from shoal.cost.records import Holder, Holding, Machine, Records, Wait
from shoal.engine.from_api.queues.wait_slo import wait_slo_of
from shoal.policy.alert_rules import ALERTS as RULES
from shoal.units.calendar_windows import rfc3339
from shoal.views.active_alerts import ActiveAlert
from shoal.views.dashboard.facts import PreemptionFacts, QueueFacts, QuotaFacts, WorkloadFacts
from shoal.views.queue_diff import Comparison, Fate, Halt, QueueChange
from shoal.views.scale_plan import PoolView
from shoal.views.what_if import PodChange, Proposal, WhatIfAnswer
from shoal.web.further_pages import FurtherSources
from shoal.web.history_answers import CostQuestion
from shoal.web.permitted_history import permitted_records, permitted_waits
from shoal.web.tile_markup import heat_class
from shoal.web.viewer import OTHERS, Viewer

LONGER = "longer than the SLO: quotas are too small or GPUs are fragmented"
ODD = '<img src=x onerror="alert(1)">'
PATHS = (
    *("/node/n-0", "/cost", "/cost?by=queue&window=7d", "/timelines", "/capacity", "/alerts", "/what-if"),
    "/what-if?nodes=1xp5",
)
VIEWERS = {
    "of-admin": Viewer(),
    "of-tenant": Viewer(frozenset({"vision"})),
    "of-team": Viewer(frozenset({"vision"}), lists_nodes=False, lists_queues=False),
}
ROUTES = {"of": "gold|h100|nvidia.com/gpu", "quota": "16"}


ALERTS = (
    ActiveAlert("GPUIdleWhileHeld", "firing", {"namespace": "hidden", "severity": "warning"}, "secret pays"),
    ActiveAlert("GPUXIDError", "firing", {"Hostname": "n-0", "severity": "critical"}, "n-0 reports Xid 79"),
    ActiveAlert("QuotaNotReturned", "pending", {"cluster_queue": "gold"}, "gold waits"),
    ActiveAlert("GPUMemoryLeaking", "firing", {"namespace": "vision"}, "mine leaks"),
)


def cluster(name: str = "gold") -> StateFacts:
    facts = StateFacts()
    facts.state.put_node(node("n-0"))
    facts.state.put_pod(pod("a", "vision", 3))
    facts.state.queues.put_queue(
        QueueFacts("ClusterQueue", name, "all", (QuotaFacts("nvidia.com/gpu", "h100", 8, 12, 4),), 1, 1)
    )
    facts.nodes = [Machine("n-0", 0, None, "p5.48xlarge", pool=name, model="H100", devices=("a", "b"))]
    return facts


def answered() -> WhatIfAnswer:
    def change(workload: str, beneficiary: str) -> QueueChange:
        halt = Halt(60.0, beneficiary, "InCohortReclamation")
        return QueueChange(workload, "main", "stops", Fate(True, 0.0, []), Fate(True, 0.0, [halt]))

    changes = [change("vision/w", "hidden/secret"), change("hidden/secret", "vision/w")]
    queues = Comparison(changes, 3, ["hidden/secret-2"], [], complete=True)
    pods = [PodChange("vision/p", "waits: 0/1", "runs on new-p5-0"), PodChange("hidden/secret", "waits", "runs on n-0")]
    return WhatIfAnswer(queues, pods, 5, 2, ["kubectl patch clusterqueue gold"], ["nothing was left out"])


def sources(name: str = "vision", fault: str = "") -> FurtherSources:
    return FurtherSources(KnownHistories(name, fault), KnownAlerts(*ALERTS), PriceFile())


def reports() -> KnownReports:
    found = KnownReports()
    found.answer = answered()
    found.pools = [PoolView("spot", 1, 2, 1, 16, 30.5, 4, "p5.48xlarge", {"cpu": "3 of 9 left"}, fault="no offering")]
    return found


async def text_of(client: aiohttp.ClientSession, url: str, viewer: str = "of-admin", **params: str) -> str:
    headers = {"Authorization": f"Bearer {viewer}"}
    async with client.get(url, params=params or None, headers=headers) as answer:
        assert answer.status == 200
        return await answer.text()


async def test_the_page_of_costs_has_groups_classes_budgets_and_the_command() -> None:
    async with served(cluster(), reports(), None, sources()) as (url, client):
        found = await text_of(client, f"{url}/cost", by="team", window="7d")
        for words in ("100.50", "the history begins late", "team vision", "at risk", "unallocated"):
            assert words in found
        assert "shoal cost --by team --window 7d" in found
        assert 'href="/cost?by=queue&amp;window=7d"' in found
        csv = await text_of(client, f"{url}/cost", by="team", window="7d", csv="groups")
        assert csv.splitlines()[0] == '"team","classes","GPU hours","active","idle","EUR","share"'
        assert csv.splitlines()[1].endswith('"10.0","30.00","10.00","40.00","39.8%"')


async def test_the_link_to_the_csv_keeps_what_was_chosen() -> None:
    async with served(cluster(), reports(), None, sources()) as (url, client):
        found = await text_of(client, f"{url}/cost", by="queue", window="30d")
        assert 'href="/cost?by=queue&amp;window=30d&amp;csv=groups"' in found


async def test_costs_without_a_history_say_how_to_have_one() -> None:
    async with served(cluster()) as (url, client):
        assert "--history DIR" in await text_of(client, f"{url}/cost")
        assert "--history DIR" in await text_of(client, f"{url}/timelines")


async def test_a_missing_price_is_asked_for_and_names_no_node_to_viewers_who_list_none() -> None:
    async with served(cluster(), reports(), VIEWERS, sources(fault="no price is known")) as (url, client):
        assert "write it in the price file for node n-0" in await text_of(client, f"{url}/cost")
        found = await text_of(client, f"{url}/cost", "of-team")
        assert "no price is known" in found
        assert "n-0" not in found


async def test_every_question_to_the_history_has_the_namespaces_of_the_viewer() -> None:
    further = sources()
    async with served(cluster(), reports(), VIEWERS, further) as (url, client):
        await text_of(client, f"{url}/cost", "of-tenant")
        await text_of(client, f"{url}/timelines", "of-tenant")
        await text_of(client, f"{url}/cost", "of-admin")
    assert isinstance(further.histories, KnownHistories)
    assert [seen for _, seen in further.histories.asked] == [frozenset({"vision"}), frozenset({"vision"}), None]


async def test_costs_by_node_are_for_viewers_who_may_list_nodes() -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        assert "may not list nodes" in await text_of(client, f"{url}/cost", "of-team", by="node")
        assert "by=node" not in await text_of(client, f"{url}/cost", "of-team")
        assert "by=node" in await text_of(client, f"{url}/cost", "of-tenant")


async def test_timelines_draw_each_phase_and_the_use_in_its_colours() -> None:
    async with served(cluster(), reports(), None, sources()) as (url, client):
        found = await text_of(client, f"{url}/timelines", window="1h")
        assert 'width="80" height="12" class="p-waits"' in found
        assert 'width="400" height="12" class="p-runs"' in found
        for style in ("u-low", "u-middle", "u-good", "u-saturated"):
            assert f'<path class="{style} solid"' in found
        assert "The newest 1 of 7 gangs and jobs are shown." in found
        csv = await text_of(client, f"{url}/timelines", window="1h", csv="uses")
        assert '"· 30 55 90 99"' in csv


async def test_the_page_of_capacity_has_nodes_with_their_price_and_pools() -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        found = await text_of(client, f"{url}/capacity", "of-tenant")
        csv = await text_of(client, f"{url}/capacity", "of-tenant", csv="groups")
        row = csv.splitlines()[1].replace('"', "").split(",")
        assert row[:5] == ["gold", "p5.48xlarge", "on-demand", "", "H100"]
        # Three of eight GPUs are held: five eighths of the price are of free ones.
        assert row[5:11] == ["1", "0", "8", "3", "5", "0"]
        assert row[12:] == ["55.04", "34.40"]
        assert "no offering" in found
        assert "shoal scale pools" in found
        refused = await text_of(client, f"{url}/capacity", "of-team")
        assert "may not list nodes" in refused
        assert "p5.48xlarge" not in refused


async def test_gpus_are_coloured_by_their_temperature_and_those_of_parts_by_that_of_the_part() -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        found = await text_of(client, url)
        for style in ("k-cool", "k-alert"):
            assert re.search(f'<path class="t-[^"]* {style}"', found), style
        assert '<path class="t-free u-free h-free"' in found
        rows = (await text_of(client, f"{url}/node/n-0", csv="gpus")).splitlines()
        assert [row.replace('"', "").split(",")[4] for row in rows[:4]] == ["°C", "51", "90", ""]
        hidden = await text_of(client, url, "of-team")
        assert "<path" not in hidden


@pytest.mark.parametrize(
    ("degrees", "style"),
    [(None, "k-unknown"), (54.9, "k-cool"), (55, "k-warm"), (75, "k-hot"), (85, "k-hot"), (85.1, "k-alert")],
)
def test_a_temperature_is_red_where_its_alert_begins(degrees: float | None, style: str) -> None:
    assert heat_class(degrees) == style
    assert next(one.expression for one in RULES if one.name == "GPUHighTemperature").endswith("> 85")


async def test_the_page_of_a_node_has_its_xid_errors_and_who_held_its_gpus_before() -> None:
    further = sources()
    async with served(cluster(), reports(), VIEWERS, further) as (url, client):
        found = await text_of(client, f"{url}/node/n-0", "of-tenant")
        for words in ("GPU has fallen off the bus", "the history begins late", "The newest 1 of 7 pods are shown."):
            assert words in found
        xids = await text_of(client, f"{url}/node/n-0", "of-tenant", csv="xids")
        assert xids.splitlines()[1].startswith(
            f'"1970-01-01T00:30:00Z","3","79","GPU has fallen off the bus","vision/vision-0, {OTHERS}"'
        )
        former = (await text_of(client, f"{url}/node/n-0", "of-tenant", csv="former")).splitlines()
        times = '"1970-01-01T00:00:00Z","1970-01-01T01:00:00Z"'
        assert former[1] == f'"vision/vision-0","0-3",{times},"4.00","ring","preempted"'
        assert former[2] == f'"{OTHERS}: 2 pods","","","","1.50","",""'
    assert isinstance(further.histories, KnownHistories)
    assert {seen for _, seen in further.histories.asked} == {frozenset({"vision"})}


async def test_without_a_history_the_page_of_a_node_says_how_to_have_one() -> None:
    async with served(cluster()) as (url, client):
        assert (await text_of(client, f"{url}/node/n-0")).count("--history DIR") == 2


async def test_a_node_without_a_price_is_named_with_what_has_to_be_written() -> None:
    facts = cluster()
    facts.nodes = [Machine("n-0", 0, None, "own-h100")]
    async with served(facts, reports(), None, sources()) as (url, client):
        found = await text_of(client, f"{url}/capacity")
        assert "machines: [{instanceType: own-h100, perHour: AMOUNT}]" in found


async def test_each_viewer_sees_the_alerts_of_what_it_may_list() -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        admin, tenant, team = [await text_of(client, f"{url}/alerts", name) for name in VIEWERS]
    for words in ("secret pays", "n-0 reports Xid 79", "gold waits", "mine leaks", "http://prometheus:9090"):
        assert words in admin
    assert "secret" not in tenant
    assert "1 alert of what your account may not list" in tenant
    assert [words in team for words in ("mine leaks", "n-0 reports", "gold waits", "secret")] == [True] + [False] * 3
    assert "GPUHighTemperature" in team


async def test_the_age_of_an_alert_is_by_the_clock_of_the_cluster() -> None:
    """Which runs faster than that of the server where the cluster is simulated."""
    alert = ActiveAlert("GPUXIDError", "firing", {}, since=rfc3339(round((NOW_S - 7200) * 1000)))
    further = msgspec.structs.replace(sources(), alerts=KnownAlerts(alert))
    async with served(cluster(), reports(), None, further) as (url, client):
        found = await text_of(client, f"{url}/alerts", csv="active")
        assert '"firing","120m"' in found


async def test_without_a_source_of_alerts_the_rules_are_shown_and_nothing_is_claimed() -> None:
    async with served(cluster()) as (url, client):
        found = await text_of(client, f"{url}/alerts")
        assert "The rules are not evaluated" in found
        assert "No alert is active" not in found
        assert "DCGM_FI_DEV_GPU_TEMP &gt; 85" in found


async def test_a_source_of_alerts_that_does_not_answer_is_said() -> None:
    further = msgspec.structs.replace(sources(), alerts=KnownAlerts(fault="status 500"))
    async with served(cluster(), reports(), None, further) as (url, client):
        found = await text_of(client, f"{url}/alerts")
        assert "Alerts cannot be read: status 500" in found
        assert "No alert is active" not in found


async def test_a_proposal_is_compared_and_can_be_copied() -> None:
    known = reports()
    async with served(cluster(), known, None, sources()) as (url, client):
        form = await text_of(client, f"{url}/what-if")
        assert "gold / h100 / nvidia.com/gpu (8 now)" in form
        page = await text_of(client, f"{url}/what-if", **ROUTES, nodes="2xp5.48xlarge")
        assert (
            'data-load="/what-if?of=gold%7Ch100%7Cnvidia.com%2Fgpu&amp;quota=16&amp;nodes=2xp5.48xlarge&amp;why"'
            in page
        )
        assert "selected" in page
        found = await text_of(client, f"{url}/what-if", **ROUTES, nodes="2xp5.48xlarge", why="")
        for words in ("With 2 more nodes", "2 would stop", "kubectl patch clusterqueue gold", "runs on new-p5-0"):
            assert words in found
        csv = await text_of(client, f"{url}/what-if", **ROUTES, nodes="2xp5.48xlarge", csv="workloads")
        assert csv.splitlines()[1].startswith('"hidden/secret","main","would stop"')
    assert known.proposals == [Proposal("gold", "h100", "nvidia.com/gpu", "16", "2xp5.48xlarge")]


async def test_waits_are_compared_with_the_slo_of_the_queue() -> None:
    facts = cluster()
    moment = "2026-01-01T00:00:00Z"
    late = WorkloadFacts("vision", "w", "q", "gold", "job/w", 1, 8, "admitted", "", moment, "2026-01-01T01:00:00Z")
    facts.state.queues.put_workload(late)
    for text, words in (("2h", '"2 h","within the SLO"'), ("10m", '"10 min","longer than the SLO: ')):
        slo = wait_slo_of({"shoal.dev/wait-slo": text})
        facts.state.queues.put_queue(QueueFacts("ClusterQueue", "gold", "all", wait_slo=slo))
        async with served(facts) as (url, client):
            assert words in (await text_of(client, f"{url}/queues", csv="waits")).splitlines()[1]
            assert f"get quota within {words.split(chr(34))[1]}." in await text_of(
                client, f"{url}/queue/ClusterQueue/gold"
            )


async def test_an_slo_that_cannot_be_read_is_told_and_half_an_hour_counts() -> None:
    facts = cluster()
    slo = wait_slo_of({"shoal.dev/wait-slo": "soon"})
    facts.state.queues.put_queue(QueueFacts("ClusterQueue", "gold", "all", wait_slo=slo))
    async with served(facts) as (url, client):
        found = await text_of(client, f"{url}/queue/ClusterQueue/gold")
    assert "within 30 min. The annotation is not used: shoal.dev/wait-slo: " in found


async def test_a_tenant_reads_of_a_proposal_what_becomes_of_its_own_pods() -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        for part in ("why", "csv"):
            found = await text_of(client, f"{url}/what-if", "of-tenant", **ROUTES, **{part: "workloads"})
            assert "vision/w" in found
            assert "secret" not in found
            assert "a workload of another namespace" in found
        assert "2 other changes are in namespaces" in await text_of(
            client, f"{url}/what-if", "of-tenant", **ROUTES, why=""
        )
        for parameters in ({}, ROUTES, {**ROUTES, "why": ""}, {**ROUTES, "csv": "pods"}):
            headers = {"Authorization": "Bearer of-team"}
            async with client.get(f"{url}/what-if", params=parameters, headers=headers) as answer:
                assert "vision/" not in await answer.text()


class SlowReports(KnownReports):
    """Compares once `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answer, self.go = answered(), asyncio.Event()

    async def what_if(self, proposal: Proposal) -> WhatIfAnswer:
        found = await super().what_if(proposal)
        await self.go.wait()
        return found


@pytest.mark.parametrize("part", ["why", "csv"])
async def test_one_viewer_has_one_proposal_compared_at_a_time(part: str) -> None:
    known = SlowReports()
    async with served(cluster(), known, VIEWERS, sources()) as (url, client):
        asked = [
            asyncio.ensure_future(text_of(client, f"{url}/what-if", nodes=f"{count}xp5", **{part: "pods"}))
            for count in range(1, 4)
        ]
        found = asyncio.ensure_future(text_of(client, f"{url}/what-if", "of-tenant", nodes="9xp5", **{part: "pods"}))
        async with asyncio.timeout(30):
            while len(known.proposals) < 2:
                await asyncio.wait([*asked, found], timeout=0.01)
        assert {one.nodes for one in known.proposals} > {"9xp5"}
        known.go.set()
        await asyncio.gather(*asked, found)
    assert len(known.proposals) == 4


async def test_a_proposal_that_cannot_be_is_a_sentence() -> None:
    async with served(cluster(), KnownReports(), None, sources()) as (url, client):
        assert "there is no such quota" in await text_of(client, f"{url}/what-if", **ROUTES, why="")
        assert "nothing is proposed" in await text_of(client, f"{url}/what-if", why="")


async def test_the_page_of_queues_has_waits_and_who_reclaims_from_whom() -> None:
    facts = cluster()
    moment = "2026-01-01T00:00:00Z"
    for namespace, name in (("vision", "mine"), ("hidden", "secret")):
        one = WorkloadFacts(namespace, name, "q", "gold", f"job/{name}", 1, 8, "admitted", "", moment)
        taken = PreemptionFacts("silver", "gold", "InCohortReclamation", moment)
        late = msgspec.structs.replace(one, reserved="2026-01-01T01:00:00Z", preemption=taken)
        facts.state.queues.put_workload(late)
    async with served(facts, None, VIEWERS) as (url, client):
        waits = await text_of(client, f"{url}/queues", csv="waits")
        assert waits.splitlines()[1] == '"gold","2","1 h","1 h","30 min",' + f'"{LONGER}"'
        between = await text_of(client, f"{url}/queues", "of-tenant", csv="reclaims")
        assert between.splitlines()[1] == '"silver","gold","InCohortReclamation","2"'
        named = await text_of(client, f"{url}/queues", "of-tenant", csv="preempted")
        assert "vision/job/mine" in named
        assert "secret" not in named


@pytest.mark.parametrize("path", PATHS)
async def test_names_with_html_in_them_are_escaped(path: str) -> None:
    alert = ActiveAlert(ODD, "firing", {"a": ODD, "severity": ODD}, ODD, ODD, ODD, ODD)
    further = FurtherSources(KnownHistories(ODD), KnownAlerts(alert))
    known = reports()
    known.pools = [PoolView(ODD, 1, 1, 1, 1, 1.0, 1, ODD, {ODD: ODD}, fault=ODD)]
    facts = cluster(ODD)
    async with served(facts, known, None, further) as (url, client):
        found = await text_of(client, url + path)
        assert "<img" not in found
        assert "&lt;img" in found or path.startswith("/what-if?")


@pytest.mark.parametrize("path", [*PATHS, "/cost?csv=groups", "/what-if?nodes=1xp5&why", "/timelines?csv=uses"])
async def test_without_a_token_none_of_these_pages_is_shown(path: str) -> None:
    async with served(cluster(), reports(), VIEWERS, sources()) as (url, client):
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            async with client.get(url + path, headers=headers) as answer:
                assert answer.status == 401


async def test_an_open_page_is_sent_with_what_was_chosen_on_it() -> None:
    further = sources()
    async with (
        served(cluster(), reports(), None, further) as (url, client),
        client.get(f"{url}/live", params={"page": "/cost?by=queue&window=7d&csv=groups", "digest": "old"}) as stream,
    ):
        line = await stream.content.readline()
    assert b"Cost by queue" in line
    assert isinstance(further.histories, KnownHistories)
    assert further.histories.asked[0][0] == CostQuestion("queue", "7d")


async def test_an_address_with_too_many_fields_is_malformed() -> None:
    async with served(cluster()) as (url, client):
        fields = "&".join(f"f{number}=1" for number in range(40))
        async with client.get(f"{url}/live", params={"page": f"/cost?{fields}"}) as answer:
            assert answer.status == 400


def test_what_other_namespaces_held_has_no_names_any_more() -> None:
    secret = Holder("secret-0", "hidden", "secret", "secret", "secret", "secret", (("app", "secret"),))
    mine = Holder("mine-0", "vision", "mine")
    records = Records(holdings=(Holding(secret, "n-0", 0), Holding(mine, "n-0", 0)))
    found = permitted_records(records, frozenset({"vision"}))
    assert "secret" not in msgspec.json.encode(found).decode()
    assert [one.holder.namespace for one in found.holdings] == [OTHERS, "vision"]
    assert permitted_waits([Wait(secret, 0), Wait(mine, 0)], frozenset({"vision"})) == [Wait(mine, 0)]
    assert permitted_records(records, None) is records
