"""Kinds that somebody may install or not, and later or never."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import DEFINITIONS, JOBS, Kind
from shoal.client.served import Served

SHARKS = Kind("sea.example.com", "v2", "sharks", "Shark")
OLD_SHARKS = Kind("sea.example.com", "v1", "sharks", "Shark")


async def install(cluster: SmallCluster, *versions: str) -> None:
    def version(name: str) -> dict[str, Any]:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        return {"name": name, "served": True, "storage": name == versions[0], "schema": schema}

    names = {"plural": "sharks", "kind": "Shark"}
    spec = {"group": "sea.example.com", "scope": "Namespaced", "names": names}
    definition = {"metadata": {"name": "sharks.sea.example.com"}}
    await cluster.create(
        DEFINITIONS, {**definition, "spec": {**spec, "versions": [version(each) for each in versions]}}
    )


@virtual
async def test_what_is_there_from_the_start_is_told_at_the_first_look(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        served, told = Served(cluster.context()), list[Kind]()
        served.when_there(JOBS, told.append)
        served.when_there(SHARKS, told.append)
        await served.look()
        assert told == [JOBS]
        assert served.missing() == [SHARKS]


@virtual
async def test_a_kind_that_is_installed_later_is_told_when_it_comes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        served, told = Served(cluster.context(), every_s=30), list[Kind]()
        served.when_there(SHARKS, told.append)
        cluster.tasks.append(asyncio.ensure_future(served.run()))
        await cluster.pass_time(100)
        assert not told
        await install(cluster, "v2")
        await cluster.until(lambda: told == [SHARKS], within_s=31)
        assert served.find(SHARKS) == SHARKS


@virtual
async def test_of_a_kind_that_is_there_in_an_older_version_only_that_one_is_told(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await install(cluster, "v1")
        served, told = Served(cluster.context()), list[Kind]()
        served.when_there(SHARKS, told.append, OLD_SHARKS)
        await cluster.pass_time(2)
        await served.look()
        assert told == [OLD_SHARKS]
        assert served.find(SHARKS) == OLD_SHARKS


@virtual
async def test_a_kind_that_only_another_version_is_there_of_is_not_there(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await install(cluster, "v7")
        served = Served(cluster.context())
        served.when_there(SHARKS, None, OLD_SHARKS)
        await cluster.pass_time(2)
        await served.look()
        assert served.find(SHARKS) is None


@virtual
async def test_whoever_asks_late_is_told_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        served, told = Served(cluster.context()), list[Kind]()
        served.when_there(JOBS)
        await served.look()
        served.when_there(JOBS, told.append)
        assert told == [JOBS]


@virtual
async def test_whoever_breaks_when_told_keeps_nobody_from_being_told_and_is_told_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        served, told = Served(cluster.context()), list[Kind]()

        def brittle(kind: Kind) -> None:
            told.append(kind)
            if len(told) == 1:
                raise KeyError("one odd fact")

        served.when_there(JOBS, brittle)
        served.when_there(JOBS, told.append)
        served.when_there(DEFINITIONS, told.append)
        await served.look()
        assert told == [JOBS, JOBS, DEFINITIONS]
        await served.look()
        assert told == [JOBS, JOBS, DEFINITIONS, JOBS]
        await served.look()
        assert len(told) == 4
