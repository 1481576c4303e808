"""The server, request by request: what it answers to whom, and with which headers."""

import asyncio
import contextlib
import re
from html.parser import HTMLParser
from typing import cast

import aiohttp
import msgspec
import pytest
from aiohttp import web

from build.dashboard_facts import node, pod, read_event
from build.web_sites import KnownReports, StateFacts, served, story
from shoal.views.dashboard.facts import DashboardNode, GroupFacts, QueueFacts, QuotaFacts, WorkloadFacts
from shoal.views.explanation_document import StoryDocument
from shoal.views.queue_tree import QuotaLine, Tree, TreeNode
from shoal.web.live import LiveStream
from shoal.web.viewer import Viewer

PAGES = ("/", "/?as=table", "/queues", "/workloads", "/node/n-0", "/pod/vision/a", "/gang/vision/g", "/job/vision/j")
ODD = '<img src=x onerror="alert(1)">'


def cluster() -> StateFacts:
    facts = StateFacts()
    facts.state.put_node(node("n-0"))
    facts.state.put_node(node("n-1"))
    facts.state.put_pod(pod("a", "vision", 3))
    facts.state.put_pod(pod("secret", "hidden", 2))
    facts.state.put_pod(pod("b", "vision", 1, ""))
    facts.state.gangs.put_group(GroupFacts("vision", "g", 2, "q", "waits for b"))
    quota = QuotaFacts("nvidia.com/gpu", "h100", 8, 12, 4)
    facts.state.queues.put_queue(QueueFacts("ClusterQueue", "gold", "all", (quota,), 1, 1))
    facts.state.queues.put_workload(
        WorkloadFacts("hidden", "secret-w", "q", "gold", "job/secret-j", 1, 2.0, "pending", "no quota", "")
    )
    return facts


def tree() -> Tree:
    line = QuotaLine("h100", "nvidia.com/gpu", 8, 12, 4, 0, 6)
    local = TreeNode("localQueue", "hidden/secret-q")
    queue = TreeNode("clusterQueue", "gold", [line], closed="it is stopped", children=[local])
    return Tree([TreeNode("cohort", "all", [line], children=[queue])])


async def text_of(client: aiohttp.ClientSession, url: str, **headers: str) -> str:
    async with client.get(url, headers=headers) as answer:
        return await answer.text()


class Inline(HTMLParser):
    """Collects what the content security policy would not run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.addresses: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._in_script = tag in ("script", "style")
        self.found += [f"{tag} {name}" for name, _ in attributes if name == "style" or name.startswith("on")]
        self.addresses += [value or "" for name, value in attributes if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.found.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_needs_no_inline_script_and_nothing_of_another_server(path: str) -> None:
    async with served(cluster(), KnownReports(tree())) as (url, client), client.get(url + path) as answer:
        assert answer.status == 200
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        parser = Inline()
        parser.feed(await answer.text())
        assert parser.found == []
        assert all(address.startswith(("/", "#")) for address in parser.addresses)
        assert any(address == "/static/shoal.js" for address in parser.addresses)


async def test_names_and_messages_with_html_in_them_are_escaped_on_every_page() -> None:
    facts = cluster()
    facts.state.put_node(DashboardNode(ODD, ODD, 8, ()))
    facts.state.put_pod(
        msgspec.structs.replace(pod("w", "vision", 1, ""), why=ODD, name=ODD, queue=ODD, gang=f"vision/{ODD}")
    )
    facts.state.put_pod(pod(ODD, ODD, 2, ODD))
    facts.state.put_event(read_event(ODD, ODD, ODD))
    facts.state.queues.put_queue(QueueFacts("ClusterQueue", ODD, ODD, (), fault=ODD))
    told = story(ODD)
    told = msgspec.structs.replace(told, name=ODD, outcome=ODD)
    odd_tree = Tree([TreeNode("cohort", ODD, closed=ODD)])
    paths = [
        *PAGES,
        "/nothing/%3Cimg%20src=x%3E",
        "/job/a/b?why",
        "/node/%3Cimg%20src%3Dx%20onerror%3D%22alert(1)%22%3E",
    ]
    async with served(facts, KnownReports(odd_tree, told)) as (url, client):
        for path in paths:
            found = await text_of(client, url + path)
            assert "<img" not in found, path
        assert "&lt;img src=x" in await text_of(client, url + "/")
        assert "&lt;img src=x" in await text_of(client, url + "/job/a/b?why")


async def test_nothing_can_be_changed() -> None:
    async with served(cluster()) as (url, client):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for path in ("/", "/node/n-0", "/sign-in"):
                async with client.request(method, url + path) as answer:
                    assert answer.status == 405


async def test_without_tokens_a_request_that_names_another_host_is_refused() -> None:
    async with served(cluster()) as (url, client):
        for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1"):
            async with client.get(url, headers={"Host": host}) as answer:
                assert answer.status == 421
        async with client.get(url, headers={"Host": "localhost:8090"}) as answer:
            assert answer.status == 200


async def test_the_fleet_shows_nodes_and_who_holds_them() -> None:
    async with served(cluster()) as (url, client):
        found = await text_of(client, url)
        assert 'aria-label="n-0: 5 of 8 GPUs held; hidden 2, vision 3; p5.48xlarge"' in found
        assert 'href="/node/n-1"' in found


async def test_the_queue_page_shows_the_tree_with_what_is_borrowed() -> None:
    async with served(cluster(), KnownReports(tree())) as (url, client):
        found = await text_of(client, url + "/queues")
        assert "it is stopped" in found
        assert 'class="q-borrowed"' in found
        csv = await text_of(client, url + "/queues?csv=tree")
        assert csv.splitlines()[2].replace('"', "").startswith("gold,cluster queue,h100,GPUs,8,12,4,0,150 %,6,0,0")


async def test_a_fault_of_the_tree_leaves_the_list_of_queues() -> None:
    class Failing(KnownReports):
        async def quota_tree(self) -> Tree | None:
            from shoal.units.errors import UserError

            raise UserError("may not list clusterqueues")

    async with served(cluster(), Failing()) as (url, client):
        found = await text_of(client, url + "/queues")
        assert "may not list clusterqueues" in found
        assert "gold" in found


async def test_the_explanation_has_its_remedies_with_commands_to_copy() -> None:
    async with served(cluster(), KnownReports(story=story())) as (url, client):
        assert 'data-load="/job/vision/j?why"' in await text_of(client, url + "/job/vision/j")
        found = await text_of(client, url + "/job/vision/j?why")
        assert "waits (NoDeviceFits)" in found
        assert 'data-copy="kubectl delete pod a"' in found


async def test_an_object_without_an_explanation_says_so() -> None:
    async with served(cluster()) as (url, client):
        assert "there is no job vision/j" in await text_of(client, url + "/job/vision/j?why")


async def test_a_page_of_an_object_that_is_gone_is_not_found() -> None:
    async with served(cluster()) as (url, client):
        for path in (
            "/node/gone",
            "/pod/vision/gone",
            "/queue/ClusterQueue/gone",
            "/elsewhere",
            "/static/../server.py",
        ):
            async with client.get(url + path) as answer:
                assert answer.status == 404


async def test_a_change_of_the_cluster_reaches_an_open_page() -> None:
    facts = cluster()
    async with served(facts) as (url, client):
        page = await text_of(client, url)
        digest = re.search(r'data-digest="(\w+)"', page)
        assert digest is not None
        async with client.get(f"{url}/live", params={"page": "/", "digest": digest[1]}) as stream:
            facts.state.put_pod(pod("c", "vision", 2, "n-1"))
            async with asyncio.timeout(20):
                message = (await stream.content.readline()).removeprefix(b"data: ")
        change = msgspec.json.decode(message)
        assert set(change["tiles"]) == {"node-n-1"}
        assert "2 of 8 GPUs held" in change["tiles"]["node-n-1"]
        assert "summary" in change["parts"]
        assert "tiles" not in change["parts"]


async def test_a_page_that_is_older_than_the_connection_is_sent_again() -> None:
    async with served(cluster()) as (url, client):
        async with client.get(f"{url}/live", params={"page": "/", "digest": "old"}) as stream, asyncio.timeout(20):
            change = msgspec.json.decode((await stream.content.readline()).removeprefix(b"data: "))
        assert "node-n-0" in change["parts"]["tiles"]


# -- viewers with tokens -----------------------------------------------------------------------------------------

VIEWERS = {
    "of-admin": Viewer(),
    "of-tenant": Viewer(frozenset({"vision"}), lists_nodes=True, lists_queues=True),
    "of-team": Viewer(frozenset({"vision"}), lists_nodes=False, lists_queues=False),
    "of-stranger": Viewer(frozenset(), lists_nodes=False, lists_queues=False),
}
ALL_PATHS = (
    *PAGES,
    "/?csv=nodes",
    "/?as=table&csv=nodes",
    "/queues?csv=tree",
    "/queues?csv=queues",
    "/workloads?csv=waiting",
    "/workloads?csv=gangs",
    "/workloads?csv=holders",
    "/node/n-0?csv=gpus",
    "/node/n-0?csv=pods",
    "/hover/n-0",
    "/pod/hidden/secret",
    "/pod/hidden/secret?csv=events",
    "/gang/hidden/secret",
    "/queue/ClusterQueue/gold",
    "/queue/ClusterQueue/gold?csv=pending",
)


@pytest.mark.parametrize("path", [*ALL_PATHS, "/live?page=/", "/job/vision/j?why"])
async def test_without_a_token_nothing_is_shown(path: str) -> None:
    async with served(cluster(), KnownReports(tree()), VIEWERS) as (url, client):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "shoal-session=guess"}):
            async with client.get(url + path, headers=headers) as answer:
                assert answer.status == 401
                assert "n-0" not in await answer.text()


async def test_a_tenant_finds_no_name_of_another_namespace_in_any_answer() -> None:
    async with served(cluster(), KnownReports(tree()), VIEWERS) as (url, client):
        everything = ""
        for path in ALL_PATHS:
            shown = await text_of(client, url + path, Authorization="Bearer of-tenant")
            # The path of the request is the tenant's own word.
            assert "secret" not in shown.replace("/pod/hidden/secret", "").replace("/gang/hidden/secret", ""), path
            everything += await text_of(client, url + path, Authorization="Bearer of-admin")
        assert "secret" in everything
        async with client.get(f"{url}/live?page=/workloads", headers={"Authorization": "Bearer of-tenant"}) as stream:
            async with asyncio.timeout(20):
                assert b"secret" not in await stream.content.readline()


async def test_a_viewer_without_rights_sees_sums_and_the_right_that_is_missing() -> None:
    async with served(cluster(), KnownReports(tree()), VIEWERS) as (url, client):
        found = await text_of(client, url, Authorization="Bearer of-stranger")
        assert "may not list nodes" in found
        assert "5 / 16" in found
        assert "n-0" not in found
        async with client.get(url + "/?csv=nodes", headers={"Authorization": "Bearer of-stranger"}) as answer:
            assert answer.status == 404
        queues = await text_of(client, url + "/queues", Authorization="Bearer of-stranger")
        assert "may not list queues" in queues
        assert "gold" not in queues


async def test_a_team_without_the_right_to_list_nodes_sees_its_own_pods() -> None:
    facts = cluster()
    why = "2 Insufficient nvidia.com/gpu"
    facts.state.put_pod(msgspec.structs.replace(pod("large", "vision", 16, ""), why=why))
    async with served(facts, None, VIEWERS) as (url, client):
        found = await text_of(client, url + "/workloads", Authorization="Bearer of-team")
        assert "vision/a" in found
        assert "most free: 8 on one node; 2 Insufficient" in found
        assert "n-1" not in found


async def test_the_explanation_is_computed_with_the_token_of_the_viewer() -> None:
    reports = KnownReports(story=story())
    async with served(cluster(), reports, VIEWERS) as (url, client):
        await text_of(client, url + "/job/vision/j?why", Authorization="Bearer of-tenant")
    assert reports.tokens == ["of-tenant"]


async def test_a_browser_signs_in_with_a_token_and_gets_the_number_of_a_session() -> None:
    async with (
        served(cluster(), None, VIEWERS) as (url, _),
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
    ):
        async with client.get(url, headers={"Accept": "text/html"}) as answer:
            assert answer.url.path == "/sign-in"
            assert "Sign in" in await answer.text()
        async with client.post(f"{url}/sign-in", data={"token": "of-tenant"}, allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert "of-tenant" not in cookie
        assert "n-0" in await text_of(client, url)
        await text_of(client, f"{url}/sign-out")
        async with client.get(url) as answer:
            assert answer.status == 401


async def test_an_open_page_ends_when_its_viewer_signs_out() -> None:
    async with (
        served(cluster(), None, VIEWERS) as (url, _),
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
        client.post(f"{url}/sign-in", data={"token": "of-tenant"}, allow_redirects=False),
        client.get(f"{url}/live", params={"page": "/"}) as stream,
    ):
        assert (await stream.content.readline()).startswith(b"data: ")
        await text_of(client, f"{url}/sign-out")
        async with asyncio.timeout(20):
            assert b"event: signed-out" in await stream.content.read()


async def test_a_rejected_token_opens_no_session() -> None:
    async with served(cluster(), None, VIEWERS) as (url, client):
        for token in ("wrong", "", "a\nb", "é", "x" * 20_000):
            async with client.post(f"{url}/sign-in", data={"token": token}) as answer:
                assert answer.status == 401
                assert "Set-Cookie" not in answer.headers


async def test_the_form_of_the_page_itself_signs_in() -> None:
    async with served(cluster(), None, VIEWERS) as (url, client):
        async with client.get(f"{url}/sign-in") as answer:
            # With no-referrer a browser names no origin for the form: it sends `Origin: null`.
            assert answer.headers["Referrer-Policy"] == "same-origin"
        headers = {"Origin": url}
        async with client.post(
            f"{url}/sign-in", data={"token": "of-tenant"}, headers=headers, allow_redirects=False
        ) as answer:
            assert answer.status == 303


async def test_the_form_of_another_site_cannot_sign_in() -> None:
    async with served(cluster(), None, VIEWERS) as (url, client):
        for origin in ("https://evil.example", "null"):
            headers = {"Origin": origin}
            async with client.post(f"{url}/sign-in", data={"token": "of-tenant"}, headers=headers) as answer:
                assert answer.status == 403


async def test_a_malformed_address_in_a_request_is_a_fault_of_the_request(caplog: pytest.LogCaptureFixture) -> None:
    async with served(cluster()) as (url, client):
        for path, headers in (("/live?page=http://[x", {}), ("/", {"Host": "[::1"})):
            async with client.get(url + path, headers=headers) as answer:
                assert answer.status == 400
    async with (
        served(cluster(), None, VIEWERS) as (url, client),
        client.post(f"{url}/sign-in", data={"token": "of-tenant"}, headers={"Origin": "http://[x"}) as answer,
    ):
        assert answer.status == 400
    assert caplog.records == []


@pytest.mark.parametrize("token", ["aé", "a b"])
async def test_a_header_without_a_token_is_rejected_before_it_is_used(token: str) -> None:
    async with (
        served(cluster(), None, {token: Viewer()}) as (url, client),
        client.get(url, headers={"Authorization": f"Bearer {token}"}) as answer,
    ):
        assert answer.status == 401


async def test_one_viewer_cannot_use_the_places_of_all_open_pages() -> None:
    async with served(cluster(), None, VIEWERS) as (url, client), contextlib.AsyncExitStack() as opened:

        async def status_of(viewer: str) -> int:
            headers = {"Authorization": f"Bearer {viewer}"}
            answer = await opened.enter_async_context(client.get(f"{url}/live?page=/", headers=headers))
            return answer.status

        assert [await status_of("of-tenant") for _ in range(9)] == [200] * 8 + [503]
        assert await status_of("of-admin") == 200


class WaitingReports(KnownReports):
    """Explains once `go` is set, and counts how many explanations are computed at present."""

    def __init__(self) -> None:
        super().__init__(story=story())
        self.go, self.begun = asyncio.Event(), asyncio.Event()

    async def explanation(self, kind: str, namespace: str, name: str, token: str) -> StoryDocument:
        found = await super().explanation(kind, namespace, name, token)
        self.begun.set()
        if VIEWERS[token] != Viewer():
            await self.go.wait()
        return found


async def test_one_viewer_waits_for_its_own_explanations_and_others_do_not() -> None:
    reports = WaitingReports()
    async with served(cluster(), reports, VIEWERS) as (url, client):
        path = f"{url}/job/vision/j?why"
        asked = [asyncio.ensure_future(text_of(client, path, Authorization="Bearer of-tenant")) for _ in range(6)]
        await reports.begun.wait()
        done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert "too many explanations" in done.pop().result()
        assert "NoDeviceFits" in await text_of(client, path, Authorization="Bearer of-admin")
        assert reports.tokens == ["of-tenant", "of-admin"]
        reports.go.set()
        answers = await asyncio.gather(*asked)
        assert sum("NoDeviceFits" in answer for answer in answers) == 4


class UnreadStream:
    """A response, its request and its transport: what is written is read by no client, until it is cut off."""

    def __init__(self) -> None:
        self.transport, self.is_cut_off = self, asyncio.Event()

    async def write(self, _: bytes) -> None:
        await self.is_cut_off.wait()
        raise ConnectionResetError

    def abort(self) -> None:
        self.is_cut_off.set()


async def test_a_stream_that_its_client_does_not_read_is_cut_off() -> None:
    unread = UnreadStream()
    stream = LiveStream(cast("web.BaseRequest", unread), cast("web.StreamResponse", unread), reading_s=0.0)
    with pytest.raises(ConnectionResetError):
        async with asyncio.timeout(20):
            await stream.write(b"data: {}\n\n")
