"""Parts of GPUs by annotation are bounded by ResourceQuotas, also where the API server's quota does not count them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from build.guarded_clusters import written
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import PODS, Kind
from shoal.client.refusals import ForbiddenError
from shoal.controllers.gatekeeping.policies import CHECKING, CHECKING_BINDINGS, parts_policy

Obj = dict[str, Any]
QUOTAS = Kind("", "v1", "resourcequotas", "ResourceQuota")
GPUS = "requests.nvidia.com/gpu"


def sharing(name: str, devices: str = "1", word: str = "gpu-fraction") -> Obj:
    annotations = {word: "0.5" if word == "gpu-fraction" else "1000", "gpu-fraction-num-devices": devices}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": written(PODS)}


@asynccontextmanager
async def beside_quota(folder: Path, hard: dict[str, str], **spec: Any) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        pair = parts_policy()
        await cluster.create(CHECKING, deepcopy(pair.policy))
        await cluster.create(CHECKING_BINDINGS, deepcopy(pair.binding))
        await cluster.create(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}})
        await cluster.pass_time(1)
        yield cluster


@virtual
@pytest.mark.parametrize("word", ["gpu-fraction", "gpu-memory"])
async def test_a_pod_whose_parts_are_of_more_devices_than_the_quota_has_is_refused(tmp_path: Path, word: str) -> None:
    async with beside_quota(tmp_path, {GPUS: "2"}) as cluster:
        with pytest.raises(ForbiddenError) as refused:
            await cluster.create(PODS, sharing("a", "3", word))
        told = "exceeded quota: q, requested: requests.nvidia.com/gpu=3, used: requests.nvidia.com/gpu=0"
        assert "shoal-limit-gpu-parts" in str(refused.value)
        assert f"{told}, limited: requests.nvidia.com/gpu=2" in str(refused.value)
        await cluster.create(PODS, sharing("b", "2", word))


@virtual
@pytest.mark.parametrize("devices", ["03", "0000000003"])
async def test_leading_zeros_of_the_number_of_devices_change_nothing(tmp_path: Path, devices: str) -> None:
    async with beside_quota(tmp_path, {GPUS: "2"}) as cluster:
        with pytest.raises(ForbiddenError, match=r"requested: requests\.nvidia\.com/gpu=3"):
            await cluster.create(PODS, sharing("a", devices))


@virtual
async def test_what_a_quota_says_is_used_is_not_there_for_parts(tmp_path: Path) -> None:
    async with beside_quota(tmp_path, {GPUS: "4"}) as cluster:
        gpus = {"nvidia.com/gpu": "3"}
        whole: Obj = {"metadata": {"name": "whole"}, "spec": deepcopy(written(PODS))}
        whole["spec"]["containers"][0]["resources"] = {"requests": gpus, "limits": gpus}
        await cluster.create(PODS, whole)
        with pytest.raises(ForbiddenError, match=r"used: requests\.nvidia\.com/gpu=3"):
            await cluster.create(PODS, sharing("a", "2"))
        await cluster.create(PODS, sharing("b", "1"))


@virtual
async def test_a_namespace_without_gpus_has_no_parts_of_them(tmp_path: Path) -> None:
    async with beside_quota(tmp_path, {GPUS: "0"}) as cluster:
        with pytest.raises(ForbiddenError, match="shoal-limit-gpu-parts"):
            await cluster.create(PODS, sharing("a"))
        await cluster.create(PODS, {"metadata": {"name": "plain"}, "spec": written(PODS)})


@virtual
@pytest.mark.parametrize("devices", ["many", "", "-3", "9" * 5000])
async def test_a_number_that_no_scheduler_reads_counts_as_one_device(tmp_path: Path, devices: str) -> None:
    async with beside_quota(tmp_path, {GPUS: "1"}) as cluster:
        await cluster.create(PODS, sharing("a", devices))
        with pytest.raises(ForbiddenError, match="shoal-limit-gpu-parts"):
            await cluster.create(PODS, sharing("b", devices))


@virtual
@pytest.mark.parametrize(
    ("hard", "spec"),
    [({"pods": "9"}, {}), ({GPUS: "0"}, {"scopes": ["Terminating"]})],
    ids=["a quota on something else", "a quota for some pods only"],
)
async def test_other_quotas_are_not_asked(tmp_path: Path, hard: dict[str, str], spec: Obj) -> None:
    async with beside_quota(tmp_path, hard, **spec) as cluster:
        await cluster.create(PODS, sharing("a", "8"))
        assert [one["metadata"]["name"] for one in await cluster.pods()] == ["a"]


@virtual
async def test_without_a_quota_there_is_no_bound(tmp_path: Path) -> None:
    async with beside_quota(tmp_path, {GPUS: "0"}) as cluster:
        with pytest.raises(ForbiddenError, match="shoal-limit-gpu-parts"):
            await cluster.create(PODS, sharing("a", "8"))
        await cluster.delete(QUOTAS, "q")
        await cluster.pass_time(1)
        await cluster.create(PODS, sharing("a", "8"))
        assert [one["metadata"]["name"] for one in await cluster.pods()] == ["a"]
