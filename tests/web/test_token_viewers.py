"""What owners of tokens may see, as an API server with RBAC says it, and sessions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from build.cluster_server import ServerProcess
from build.plain_client import client_of
from shoal.cli.web_reports import with_token
from shoal.client.clock import WallClock
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.http.settings import KubeSettings
from shoal.client.port import Api
from shoal.client.refusals import UnauthorizedError
from shoal.web.sign_in import Sessions, TokenViewers
from shoal.web.viewer import Viewer

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class StoppedClock(WallClock):
    def __init__(self) -> None:
        super().__init__()
        self.at_s = 1_000.0

    def seconds(self) -> float:
        return self.at_s


def rule(kind: str, name: str, *resources: str) -> dict[str, object]:
    rules = [{"apiGroups": ["*"], "resources": list(resources), "verbs": ["list"]}]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "rules": rules}


def binding(kind: str, role: str, account: str, *, role_kind: str = "ClusterRole") -> dict[str, object]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}
    metadata = {"name": f"{role}-{account}"}
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": metadata,
        "subjects": [subject],
        "roleRef": reference,
    }


@asynccontextmanager
async def viewers(server: ServerProcess, clock: WallClock) -> AsyncIterator[TokenViewers]:
    def api_of(token: str) -> Api:
        return KubeApi(with_token(locate(server.kubeconfig), token), random.Random(1), KubeSettings(timeout_s=20.0))

    found = TokenViewers(api_of, clock)
    try:
        yield found
    finally:
        await found.close()


@pytest.mark.slow
async def test_a_viewer_sees_what_rbac_lets_the_owner_of_the_token_list(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--authorization", "rbac")
    try:
        admin = client_of(server.kubeconfig)
        tokens: dict[str, str] = {}
        for name in ("operator", "tenant", "stranger"):
            metadata = {"name": name}
            admin.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": metadata})
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
            tokens[name] = admin.ask("POST", path, request)["status"]["token"]
        admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "vision"}})
        everything = ("pods", "nodes", "clusterqueues", "events", "workloads")
        admin.ask("POST", f"{RBAC}/clusterroles", rule("ClusterRole", "everything", *everything))
        admin.ask("POST", f"{RBAC}/clusterroles", rule("ClusterRole", "pods", "pods"))
        admin.ask("POST", f"{RBAC}/clusterroles", rule("ClusterRole", "events", "events"))
        admin.ask("POST", f"{RBAC}/clusterrolebindings", binding("ClusterRoleBinding", "everything", "operator"))
        inside = f"{RBAC}/namespaces/vision/rolebindings"
        admin.ask("POST", inside, binding("RoleBinding", "pods", "tenant"))
        clock = StoppedClock()
        async with viewers(server, clock) as found:
            names = ("vision", "hidden")
            assert await found.viewer(tokens["operator"], names) == Viewer()
            nothing = frozenset[str]()
            seen = await found.viewer(tokens["tenant"], names)
            # The right to list pods opens neither Events nor Workloads.
            assert (seen.namespaces, seen.events_in, seen.workloads_in) == (frozenset({"vision"}), nothing, nothing)
            assert not seen.lists_nodes
            assert not seen.lists_queues
            stranger = Viewer(nothing, False, False, nothing, nothing)
            assert await found.viewer(tokens["stranger"], names) == stranger
            for wrong in ("wrong", tokens["tenant"] + "x", "Bearer " + tokens["tenant"]):
                with pytest.raises(UnauthorizedError):
                    await found.viewer(wrong, names)
            admin.ask("POST", inside, binding("RoleBinding", "events", "tenant"))
            # A right is asked about again after a minute.
            clock.at_s += 61
            assert (await found.viewer(tokens["tenant"], names)).events_in == frozenset({"vision"})
            admin.ask("DELETE", f"{inside}/pods-tenant")
            clock.at_s += 61
            assert (await found.viewer(tokens["tenant"], names)).namespaces == frozenset()
    finally:
        server.stop()


class RejectingApi:
    """An API server that rejects every token."""

    def __init__(self) -> None:
        self.is_closed = False

    async def post(self, *_: object) -> dict[str, object]:
        raise UnauthorizedError("Unauthorized")

    async def close(self) -> None:
        self.is_closed = True


async def test_a_rejected_token_keeps_no_connection_and_no_place_of_a_viewer() -> None:
    opened: list[RejectingApi] = []

    def api_of(_: str) -> Api:
        opened.append(RejectingApi())
        return cast("Api", opened[-1])

    found = TokenViewers(api_of, StoppedClock())
    for number in range(3):
        with pytest.raises(UnauthorizedError):
            await found.viewer(f"guess-{number}", ())
    assert [one.is_closed for one in opened] == [True, True, True]


class AcceptingApi(RejectingApi):
    async def post(self, *_: object) -> dict[str, object]:
        if self.is_closed:
            raise AssertionError("a request of a client that is closed")
        return {"status": {"allowed": True}}


class SlowlyRejectingApi(RejectingApi):
    """Rejects once `go` is set."""

    def __init__(self, go: asyncio.Event) -> None:
        super().__init__()
        self.go = go

    async def post(self, *_: object) -> dict[str, object]:
        await self.go.wait()
        return await super().post()


async def test_tokens_that_are_not_yet_accepted_take_no_place_of_a_viewer() -> None:
    go = asyncio.Event()
    owner = AcceptingApi()
    rejecting: list[SlowlyRejectingApi] = []

    def api_of(token: str) -> Api:
        if not token.startswith("guess"):
            return cast("Api", owner)
        rejecting.append(SlowlyRejectingApi(go))
        return cast("Api", rejecting[-1])

    found = TokenViewers(api_of, StoppedClock())
    await found.viewer("owner", ())
    guesses = [asyncio.ensure_future(found.viewer(f"guess-{number}", ())) for number in range(100)]
    # Each has come to its request.
    await asyncio.sleep(0)
    assert len(rejecting) == 100
    assert not owner.is_closed
    go.set()
    answers = await asyncio.gather(*guesses, return_exceptions=True)
    assert all(isinstance(answer, UnauthorizedError) for answer in answers)
    assert all(one.is_closed for one in rejecting)
    assert await found.viewer("owner", ("vision",)) == Viewer()


class PausedApi(AcceptingApi):
    """Accepts the token, and answers what follows once `go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.posts = asyncio.Event(), 0

    async def post(self, *_: object) -> dict[str, object]:
        self.posts += 1
        if self.posts > 1:
            await self.go.wait()
        return await super().post()


async def test_the_place_of_an_idle_viewer_is_taken_and_no_client_is_closed_that_is_in_use() -> None:
    paused, others = PausedApi(), [AcceptingApi() for _ in range(70)]
    free = iter([cast("Api", paused), *(cast("Api", one) for one in others)])
    found = TokenViewers(lambda _: next(free), StoppedClock())
    in_use = asyncio.ensure_future(found.viewer("first", ()))
    await asyncio.sleep(0)
    for number in range(70):
        await found.viewer(f"owner-{number}", ())
    assert [one.is_closed for one in others] == [True] * 7 + [False] * 63
    assert not paused.is_closed
    paused.go.set()
    assert await in_use == Viewer()


def test_a_session_ends_after_twelve_hours_and_when_its_owner_signs_out() -> None:
    clock = StoppedClock()
    sessions = Sessions(clock)
    first, second = sessions.begin("a"), sessions.begin("b")
    assert first != second
    assert (sessions.token(first), sessions.token(second)) == ("a", "b")
    sessions.end(second)
    assert sessions.token(second) == ""
    clock.at_s += 12 * 3_600
    assert sessions.token(first) == ""
    assert sessions.token("") == ""
