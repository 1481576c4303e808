"""Who waits for the allocation of addresses, and who has no reason to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.planes import Operations, operations
from shoal.embedded.apiserver.resource import Obj
from shoal.embedded.apiserver.rest.addresses import ALLOCATION


async def made(api: Operations, **spec: Any) -> Obj:
    ports = [{"port": 80, "targetPort": 80, "protocol": "TCP"}]
    body = {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "web"}, "spec": {"ports": ports, **spec}}
    return await api.create("services", body)


async def test_labels_and_selectors_change_while_others_are_given_addresses(tmp_path: Path) -> None:
    async with operations(tmp_path) as api:
        service = await made(api, selector={"app": "web"})
        service["metadata"]["labels"] = {"tier": "front"}
        service["spec"]["selector"] = {"app": "other"}
        async with asyncio.timeout(60), api.state.lock(ALLOCATION):
            changed = await api.update("services", service)
        assert changed["metadata"]["labels"] == {"tier": "front"}
        assert changed["spec"]["clusterIP"] == service["spec"]["clusterIP"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "NodePort"},
        {"ports": [{"port": 81, "targetPort": 80, "protocol": "TCP"}]},
        {"type": "LoadBalancer", "externalTrafficPolicy": "Local"},
    ],
    ids=["another type", "another port", "a port for health checks"],
)
async def test_whoever_may_need_another_address_waits_for_the_allocation(tmp_path: Path, wanted: Obj) -> None:
    async with operations(tmp_path) as api:
        service = await made(api)
        service["spec"] |= wanted
        async with api.state.lock(ALLOCATION):
            changing = asyncio.ensure_future(api.update("services", service))
            for _ in range(50):
                await asyncio.sleep(0)
            assert not changing.done()
        assert (await changing)["spec"].get("type") == wanted.get("type", "ClusterIP")
