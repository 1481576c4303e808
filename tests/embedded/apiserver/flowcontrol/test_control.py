"""Flow control of a control plane: by what is stored, with the headers and the refusals of Kubernetes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
import yaml

from build.planes import Operations, operations
from build.served_planes import ServedPlane, served_plane
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.flowcontrol.control import GROUP, FlowControl, metered
from shoal.embedded.apiserver.flowcontrol.levels import FLOW_SEATS
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.rest.creating import create
from shoal.embedded.apiserver.rest.incoming import accepted
from shoal.embedded.apiserver.status import ApiError

ADA = Actor("ada", ("system:authenticated",))
ROOT = Actor("root", ("system:masters", "system:authenticated"))
LIST = RequestInfo("list", "", "v1", "pods", "", "default")


def uid(ops: Operations, plural: str, name: str) -> str:
    found = ops.context.state.reader.get(GROUP, plural, "", name)
    assert found is not None
    return str(found["metadata"]["uid"])


async def test_seats_are_divided_by_shares_and_the_administrator_has_no_limit(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader)
        assert control.flow_of(ADA, LIST).level.limits.seats == 49
        assert control.flow_of(ROOT, LIST).is_exempt
        assert control.flow_of(ADA, LIST).headers == {
            "X-Kubernetes-PF-FlowSchema-UID": uid(ops, "flowschemas", "global-default"),
            "X-Kubernetes-PF-PriorityLevel-UID": uid(ops, "prioritylevelconfigurations", "global-default"),
        }


async def test_a_changed_level_counts_for_the_next_request(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader)
        first = await control.seat(control.flow_of(ADA, LIST))
        schema = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "FlowSchema",
            "metadata": {"name": "ada"},
            "spec": {
                "matchingPrecedence": 5,
                "priorityLevelConfiguration": {"name": "catch-all"},
                "rules": [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "ada"}}],
                        "resourceRules": [
                            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]},
                        ],
                    }
                ],
            },
        }
        call = ops.call("create", "flowschemas", group=GROUP)
        call.namespace = ""
        await create(ops.context, call, accepted(call, schema))
        assert control.flow_of(ADA, LIST).level.name == "catch-all"
        first.release()


async def test_users_of_one_level_wait_for_its_seats(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader, seats=1)
        lost = control.flow_of(Actor("bob", ("system:unauthenticated",)), LIST)
        stranger = control.flow_of(ADA, LIST)
        assert (lost.level.name, stranger.level.name) == ("global-default", "global-default")
        held = await control.seat(stranger)
        waiting = asyncio.create_task(control.seat(lost))
        await asyncio.sleep(0)
        assert not waiting.done()
        held.release()
        (await waiting).release()
        assert stranger.level.seats == 0


async def test_a_wait_that_is_too_long_ends_in_a_refusal(tmp_path: Path) -> None:
    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader, seats=1, longest_wait_s=0.0)
        flow = control.flow_of(ADA, LIST)
        held = await control.seat(flow)
        with pytest.raises(ApiError) as refused:
            await control.seat(flow)
        assert (refused.value.code, refused.value.headers) == (429, {"Retry-After": "1"})
        held.release()
        (await control.seat(flow)).release()
        assert (flow.level.seats, flow.level.waiting()) == (0, 0)


async def test_what_is_metered_gives_its_result_and_its_failure(tmp_path: Path) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def answers() -> int:
        await asyncio.sleep(0)
        return sum(range(10_000))

    async with operations(tmp_path) as ops:
        control = FlowControl(ops.state.reader)
        seat = await control.seat(control.flow_of(ADA, LIST))

        async def run() -> int:
            return await metered(answers(), seat)

        assert await asyncio.create_task(run()) == sum(range(10_000))
        assert seat.used_s > 0
        with pytest.raises(ValueError, match="no"):
            await metered(fails(), seat)
        seat.release()


def access(served: ServedPlane) -> tuple[str, str]:
    """Where the server is, and the administrator's token."""
    kubeconfig = yaml.safe_load(served.kubeconfig.read_text())
    return kubeconfig["clusters"][0]["cluster"]["server"], served.plane.authority.admin_token


async def test_answers_carry_what_they_were_classified_as(tmp_path: Path) -> None:
    async with served_plane(tmp_path) as served:
        url, token = access(served)
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            for path in ("/api/v1/pods", "/api/v1/nodes/none", "/api/v1/pods?watch=1&timeoutSeconds=1", "/version"):
                async with session.get(url + path, ssl=False) as response:
                    found = response.headers["X-Kubernetes-PF-FlowSchema-UID"]
                reader = served.plane.context.state.reader
                exempt = reader.get(GROUP, "flowschemas", "", "exempt")
                assert exempt is not None
                assert found == exempt["metadata"]["uid"]
            async with session.get(url + "/metrics", ssl=False) as response:
                text = await response.text()
            assert 'apiserver_flowcontrol_current_executing_seats{priority_level="workload-low"} 0' in text


async def test_watches_give_their_seats_back(tmp_path: Path) -> None:
    async with served_plane(tmp_path) as served:
        url, token = access(served)
        headers = {"Authorization": f"Bearer {token}", "Impersonate-User": "ada"}
        async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:
            watches = [await session.get(url + "/api/v1/namespaces?watch=1", ssl=False) for _ in range(FLOW_SEATS + 8)]
            assert {watch.status for watch in watches} == {200}
            async with session.get(url + "/api/v1/namespaces/default", ssl=False) as response:
                assert response.status == 200
            for watch in watches:
                watch.close()
