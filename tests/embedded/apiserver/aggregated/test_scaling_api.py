"""Scales and aggregated APIs are the same for an autoscaler over HTTP and for one in the server's process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from build.hook_server import HookServer, hook_server
from build.served_planes import served_plane
from build.small_clusters import ADMIN
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.kind import API_SERVICES, CONFIG_MAPS, DEPLOYMENTS, SERVICES
from shoal.client.refusals import BadRequestError, BusyError, ForbiddenError, InvalidError, NotFoundError, StaleError
from shoal.client.scaling import ScalingApi
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.embedded.apiserver.server.control_plane import ControlPlane

GROUP = "metrics.k8s.io"
PODS = f"/apis/{GROUP}/v1beta1/namespaces/default/pods"
LABELS = {"app": "web"}
DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    },
}
WAYS = ["inside", "http"]


@asynccontextmanager
async def scaling(folder: Path, way: str) -> AsyncIterator[tuple[ScalingApi, ControlPlane]]:
    async with served_plane(folder, authorization="rbac") as served:
        plane = served.plane
        await InsideApi(plane, ADMIN, "test").create(DEPLOYMENTS, deepcopy(DEPLOYMENT))
        if way == "inside":
            yield InsideScaling(plane, ADMIN, "test"), plane
            return
        api = KubeApi(locate(served.kubeconfig), random.Random(1))
        try:
            yield api, plane
        finally:
            await api.close()


@pytest.mark.parametrize("way", WAYS)
async def test_the_replicas_of_a_scale_are_read_and_written(tmp_path: Path, way: str) -> None:
    async with scaling(tmp_path, way) as (api, plane):
        scale = await api.scale(DEPLOYMENTS, "default", "web")
        assert (scale["kind"], scale["spec"], scale["status"]) == (
            "Scale",
            {"replicas": 2},
            {"replicas": 0, "selector": "app=web"},
        )
        await api.rescale(DEPLOYMENTS, {**scale, "spec": {"replicas": 5}})
        written = (await InsideApi(plane, ADMIN, "test").get(DEPLOYMENTS, "default", "web")).obj()
        assert written["spec"]["replicas"] == 5
        with pytest.raises(StaleError):
            await api.rescale(DEPLOYMENTS, {**scale, "spec": {"replicas": 7}})
        with pytest.raises(InvalidError):
            await api.rescale(DEPLOYMENTS, {"kind": "Scale", "apiVersion": "autoscaling/v1", **_named(scale, -1)})


def _named(scale: dict[str, Any], replicas: int) -> dict[str, Any]:
    meta = {key: scale["metadata"][key] for key in ("name", "namespace")}
    return {"metadata": meta, "spec": {"replicas": replicas}}


@pytest.mark.parametrize("way", WAYS)
async def test_what_has_no_scale_is_not_found(tmp_path: Path, way: str) -> None:
    async with scaling(tmp_path, way) as (api, _):
        with pytest.raises(NotFoundError, match=r'deployments\.apps "none" not found'):
            await api.scale(DEPLOYMENTS, "default", "none")
        with pytest.raises(NotFoundError):
            await api.scale(CONFIG_MAPS, "default", "web")


@pytest.mark.parametrize("way", WAYS)
async def test_an_aggregated_api_is_asked_with_its_query(tmp_path: Path, way: str) -> None:
    listed = {"kind": "APIResourceList", "groupVersion": f"{GROUP}/v1beta1", "resources": []}
    queries: list[str] = []

    async def pods(request: web.Request) -> web.StreamResponse:
        queries.append(request.query["labelSelector"])
        return web.json_response({"items": [1]})

    async with (
        scaling(tmp_path, way) as (api, plane),
        hook_server("meters.default.svc", routes={PODS: pods}) as other,
    ):
        with pytest.raises(NotFoundError, match=r"could not find the requested resource|404 page not found"):
            await api.ask(PODS, {})
        other.answers[f"/apis/{GROUP}/v1beta1"] = lambda _: web.json_response(listed)
        refused = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": "no such label"}
        other.answers[f"{PODS}/bad"] = lambda _: web.json_response(refused, status=400)
        other.answers[f"{PODS}/odd"] = lambda _: web.Response(text="no JSON", status=200)
        await _register(plane, other)
        assert await api.ask(PODS, {"labelSelector": "app in (a, b)"}) == {"items": [1]}
        assert queries == ["app in (a, b)"]
        with pytest.raises(BadRequestError, match="no such label"):
            await api.ask(f"{PODS}/bad", {})
        with pytest.raises(BusyError):
            await api.ask(f"{PODS}/odd", {})


async def _register(plane: ControlPlane, other: HookServer) -> None:
    api = InsideApi(plane, ADMIN, "test")
    meta = {"name": "meters", "namespace": "default", "annotations": {"shoal.dev/endpoint": other.url}}
    await api.create(SERVICES, {"metadata": meta, "spec": {"ports": [{"port": 443}]}})
    spec = {
        "group": GROUP,
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": "default", "name": "meters", "port": 443},
        "caBundle": other.bundle,
    }
    name = f"v1beta1.{GROUP}"
    made = await api.create(API_SERVICES, {"metadata": {"name": name}, "spec": spec})
    async with asyncio.timeout(30):
        async for batch in api.watch(API_SERVICES, made.version):
            for event in batch:
                obj = event.item.obj() if event.item is not None else {}
                conditions = (obj.get("status") or {}).get("conditions") or ()
                if obj["metadata"]["name"] == name and any(one["reason"] == "Passed" for one in conditions):
                    return


async def test_a_user_without_rights_is_refused_inside_as_well(tmp_path: Path) -> None:
    async with scaling(tmp_path, "inside") as (_, plane):
        stranger = InsideScaling(plane, Actor("bob", ("system:authenticated",)), "test")
        with pytest.raises(ForbiddenError, match='cannot get resource "deployments/scale"'):
            await stranger.scale(DEPLOYMENTS, "default", "web")
        with pytest.raises(ForbiddenError, match=r'cannot list resource "pods" in API group "metrics\.k8s\.io"'):
            await stranger.ask(PODS, {})
        autoscaler = Actor(
            "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
            ("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
        )
        allowed = InsideScaling(plane, autoscaler, "test")
        assert (await allowed.scale(DEPLOYMENTS, "default", "web"))["spec"] == {"replicas": 2}
        with pytest.raises(NotFoundError):
            await allowed.ask(PODS, {})
