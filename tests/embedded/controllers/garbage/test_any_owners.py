"""Whatever owns whatever, in circles too: what is left when all is quiet is what the rules say, in any weather."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.small_clusters import SmallCluster, small_cluster
from build.stormy_api import STORM, StormyApi
from build.virtual_time import in_virtual_time
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Deletion
from shoal.embedded.controllers.garbage.collector import garbage_collector

Policy = Literal["Background", "Foreground", "Orphan"]
Owners = Mapping[str, Mapping[str, bool]]
"""Of each object: its owners, and whether it blocks their deletion."""


class _Case(msgspec.Struct, frozen=True):
    owners: dict[str, dict[str, bool]]
    deletions: tuple[tuple[str, Policy], ...]


@st.composite
def _cases(draw: st.DrawFn) -> _Case:
    names = [f"o{number}" for number in range(draw(st.integers(2, 6)))]
    some = st.dictionaries(st.sampled_from(names), st.booleans(), max_size=3)
    owners = {name: draw(some) for name in names}
    policies: st.SearchStrategy[Policy] = st.sampled_from(("Background", "Foreground", "Orphan"))
    deletions = draw(st.lists(st.tuples(st.sampled_from(names), policies), min_size=1, max_size=2))
    return _Case(owners, tuple(deletions))


def _left(owners: Owners, name: str, policy: Policy) -> dict[str, set[str]]:
    """The oracle: owners of what is left."""
    after = {one: set(names) for one, names in owners.items()}
    if name not in after:
        return after
    gone = {name}
    if policy == "Orphan":
        for names in after.values():
            names.discard(name)
    while True:
        more = {one for one, names in after.items() if one not in gone and names and names <= gone}
        if not more:
            break
        gone |= more
    return {one: names - gone for one, names in after.items() if one not in gone}


async def _build(cluster: SmallCluster, owners: Owners) -> None:
    made = {name: await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}}) for name in owners}
    for name, named in owners.items():
        references = [_reference(made[owner], blocks=blocks) for owner, blocks in named.items()]
        await cluster.patch(CONFIG_MAPS, name, {"metadata": {"ownerReferences": references or None}})


def _reference(owner: Obj, *, blocks: bool) -> Obj:
    meta = owner["metadata"]
    named = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
    return named | {"blockOwnerDeletion": blocks}


async def _there(cluster: SmallCluster) -> dict[str, set[str]]:
    metas = [one["metadata"] for one in await cluster.all(CONFIG_MAPS, "default")]
    return {
        meta["name"]: {one["name"] for one in meta.get("ownerReferences", ())}
        for meta in metas
        if meta["name"].startswith("o")
    }


async def _run(folder: Path, case: _Case, *, storm: bool) -> None:
    async with small_cluster(folder) as cluster:
        await _build(cluster, case.owners)
        there: dict[str, set[str]] = {one: set(names) for one, names in case.owners.items()}
        api = StormyApi(cluster.api, cluster.clock, random.Random(7), STORM) if storm else None
        cluster.start(garbage_collector, api=api)
        await cluster.pass_time(5)
        for name, policy in case.deletions:
            if name in there:
                await cluster.delete(CONFIG_MAPS, name, Deletion(policy=policy))
            there = _left({one: dict.fromkeys(names, True) for one, names in there.items()}, name, policy)
            if api is not None:
                await _kill_often(cluster, api)
            await cluster.pass_time(200 if storm else 10)
            assert await _there(cluster) == there


async def _kill_often(cluster: SmallCluster, api: StormyApi) -> None:
    for seconds in (0.1, 0.3, 0.05, 0.7, 1.5):
        await cluster.pass_time(seconds)
        ended, cluster.tasks = cluster.tasks, []
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        cluster.start(garbage_collector, api=api)


@settings(max_examples=examples(40), deadline=None)
@given(case=_cases())
def test_what_is_left_is_what_the_rules_say(tmp_path_factory: pytest.TempPathFactory, case: _Case) -> None:
    in_virtual_time(_run(tmp_path_factory.mktemp("quiet"), case, storm=False))


@settings(max_examples=examples(15), deadline=None)
@given(case=_cases())
def test_a_collector_killed_again_and_again_in_a_storm_ends_right(
    tmp_path_factory: pytest.TempPathFactory, case: _Case
) -> None:
    in_virtual_time(_run(tmp_path_factory.mktemp("storm"), case, storm=True))
