"""Quotas and limits of a namespace: what is counted, what is refused, what is filled in."""

from __future__ import annotations

import aiohttp
import pytest

from build.api_objects import container, pod, ready_for_pods, secret
from build.cluster_api import Api, Obj


async def make_quota(api: Api, hard: dict[str, str], **spec: object) -> None:
    """The quota, once somebody has counted what is there."""
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    (await api.post(api.core("resourcequotas"), body)).ok(201)
    async with api.watch(api.core("resourcequotas"), fieldSelector="metadata.name=q", timeoutSeconds=60) as watch:
        try:
            while (await watch.next())["object"].get("status", {}).get("hard") != hard:
                pass
        except (AssertionError, TimeoutError, aiohttp.ClientError):
            pytest.skip("nobody counts quotas here")


async def used(api: Api) -> dict[str, str]:
    found: dict[str, str] = (await api.get(api.core("resourcequotas", "q"))).ok()["status"]["used"]
    return found


async def make_limits(api: Api, **limits: object) -> None:
    spec = {"limits": [{"type": "Container", **limits}]}
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": spec}
    (await api.post(api.core("limitranges"), body)).ok(201)


def asking(name: str, requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> Obj:
    resources = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return pod(name, containers=[container(resources=resources)])


async def test_a_quota_of_pods_is_counted_and_kept(api: Api) -> None:
    await ready_for_pods(api)
    await make_quota(api, {"pods": "1"})
    (await api.post(api.core("pods"), pod("a"))).ok(201)
    assert (await used(api))["pods"] == "1"
    answer = await api.post(api.core("pods"), pod("b"))
    words = 'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert answer.refused(403, "Forbidden") == words
    assert answer.body["details"] == {"name": "b", "kind": "pods"}


async def test_a_quota_of_amounts_wants_every_container_to_say_its_own(api: Api) -> None:
    await ready_for_pods(api)
    await make_quota(api, {"requests.cpu": "1", "limits.memory": "1Gi"})
    answer = await api.post(api.core("pods"), pod("a"))
    words = 'pods "a" is forbidden: failed quota: q: must specify limits.memory for: main; requests.cpu for: main'
    assert answer.refused(403, "Forbidden") == words
    (await api.post(api.core("pods"), asking("a", {"cpu": "600m"}, {"memory": "512Mi"}))).ok(201)
    assert await used(api) == {"requests.cpu": "600m", "limits.memory": "512Mi"}
    answer = await api.post(api.core("pods"), asking("b", {"cpu": "500m"}, {"memory": "256Mi"}))
    words = (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m, used: requests.cpu=600m, '
        "limited: requests.cpu=1"
    )
    assert answer.refused(403, "Forbidden") == words


@pytest.mark.needs("controllers")
async def test_a_quota_counts_devices_by_what_is_requested(api: Api) -> None:
    await ready_for_pods(api)
    await make_quota(api, {"requests.nvidia.com/gpu": "2"})
    (await api.post(api.core("pods"), asking("a", limits={"nvidia.com/gpu": "2"}))).ok(201)
    assert await used(api) == {"requests.nvidia.com/gpu": "2"}
    answer = await api.post(api.core("pods"), asking("b", limits={"nvidia.com/gpu": "1"}))
    words = (
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, '
        "used: requests.nvidia.com/gpu=2, limited: requests.nvidia.com/gpu=2"
    )
    assert answer.refused(403, "Forbidden") == words
    (await api.post(api.core("pods"), pod("c"))).ok(201)


async def test_a_quota_counts_objects_of_any_kind(api: Api) -> None:
    await make_quota(api, {"count/secrets": "1"})
    (await api.post(api.core("secrets"), secret("a"))).ok(201)
    answer = await api.post(api.core("secrets"), secret("b"))
    words = (
        'secrets "b" is forbidden: exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, '
        "limited: count/secrets=1"
    )
    assert answer.refused(403, "Forbidden") == words


@pytest.mark.needs("controllers")
async def test_a_trial_is_held_against_a_quota_and_not_counted(api: Api) -> None:
    await make_quota(api, {"count/secrets": "1"})
    (await api.post(api.core("secrets"), secret("a"), dryRun="All")).ok(201)
    assert (await used(api))["count/secrets"] == "0"
    (await api.post(api.core("secrets"), secret("a"))).ok(201)
    assert (await api.post(api.core("secrets"), secret("b"), dryRun="All")).code == 403


@pytest.mark.needs("controllers")
async def test_a_quota_of_a_scope_counts_only_that(api: Api) -> None:
    await ready_for_pods(api)
    await make_quota(api, {"pods": "1"}, scopes=["NotBestEffort"])
    (await api.post(api.core("pods"), pod("free-1"))).ok(201)
    (await api.post(api.core("pods"), pod("free-2"))).ok(201)
    (await api.post(api.core("pods"), asking("a", {"cpu": "1"}))).ok(201)
    assert (await api.post(api.core("pods"), asking("b", {"cpu": "1"}))).refused(403, "Forbidden")


async def test_limits_are_filled_in_where_none_are_said(api: Api) -> None:
    await ready_for_pods(api)
    await make_limits(api, default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "250m"})
    made = (await api.post(api.core("pods"), pod("a"))).ok(201)
    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "250m", "memory": "1Gi"},
    }
    words = "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == words
    said = (await api.post(api.core("pods"), asking("b", {"cpu": "100m"}, {"cpu": "200m", "memory": "1Mi"}))).ok(201)
    assert said["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "200m"


async def test_amounts_beyond_the_limits_are_refused(api: Api) -> None:
    await ready_for_pods(api)
    await make_limits(api, max={"cpu": "1"}, min={"cpu": "100m"}, maxLimitRequestRatio={"cpu": "2"})
    for requests, limits, words in (
        ({"cpu": "1"}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"cpu": "50m"}, {"cpu": "100m"}, "minimum cpu usage per Container is 100m, but request is 50m"),
        (
            {"cpu": "100m"},
            {"cpu": "500m"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000",
        ),
    ):
        answer = await api.post(api.core("pods"), asking("a", requests, limits))
        assert answer.refused(403, "Forbidden") == f'pods "a" is forbidden: {words}'


async def test_limits_give_themselves_what_follows_from_them(api: Api) -> None:
    await make_limits(api, max={"cpu": "2"})
    (limits,) = (await api.get(api.core("limitranges", "l"))).ok()["spec"]["limits"]
    assert limits == {"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}
