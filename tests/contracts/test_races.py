"""Many writers at once: nobody's change is lost, nobody's name is taken twice, every watcher sees one order."""

from __future__ import annotations

import asyncio

from build.api_objects import make_configmap, make_secret, names
from build.cluster_api import Api, Obj

WRITERS, ROUNDS = 8, 5


async def _count_up(api: Api, path: str) -> int:
    """Read, add one, write what was read; again if somebody was quicker. How often somebody was."""
    conflicts = 0
    while True:
        found = (await api.get(path)).ok()
        found["data"]["n"] = str(int(found["data"]["n"]) + 1)
        answer = await api.put(path, found)
        if answer.code == 200:
            return conflicts
        answer.refused(409, "Conflict")
        conflicts += 1


async def test_no_change_of_many_writers_is_lost(api: Api) -> None:
    await make_configmap(api, "a", {"n": "0"})
    path = api.core("configmaps", "a")

    async def write() -> None:
        for _ in range(ROUNDS):
            await _count_up(api, path)

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    assert (await api.get(path)).ok()["data"] == {"n": str(WRITERS * ROUNDS)}


async def test_patches_of_many_writers_all_arrive(api: Api) -> None:
    await make_configmap(api, "a")
    path = api.core("configmaps", "a")
    answers = await asyncio.gather(*(api.patch(path, {"data": {f"k{n}": str(n)}}) for n in range(WRITERS)))
    assert [answer.code for answer in answers] == [200] * WRITERS
    assert (await api.get(path)).ok()["data"] == {f"k{n}": str(n) for n in range(WRITERS)}


async def test_one_of_many_gets_a_name(api: Api) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    answers = await asyncio.gather(*(api.post(api.core("secrets"), body) for _ in range(WRITERS)))
    assert sorted(answer.code for answer in answers) == [201] + [409] * (WRITERS - 1)


async def test_one_of_many_deletes(api: Api) -> None:
    await make_secret(api, "a")
    answers = await asyncio.gather(*(api.delete(api.core("secrets", "a")) for _ in range(WRITERS)))
    # A server may find a deletion that was overtaken to be done.
    codes = [answer.code for answer in answers]
    assert 200 in codes
    assert set(codes) <= {200, 404, 409}
    assert names((await api.get(api.core("secrets"))).ok()) == []


async def test_watchers_see_all_of_it_in_one_order(api: Api) -> None:
    since = (await api.get(api.core("secrets"))).ok()["metadata"]["resourceVersion"]
    number = WRITERS * 3

    async def seen() -> list[tuple[str, str, str]]:
        async with api.watch(api.core("secrets"), resourceVersion=since) as watch:
            return [_brief(event) for event in await watch.take(number)]

    async def live(name: str) -> None:
        await make_secret(api, name)
        (await api.patch(api.core("secrets", name), {"metadata": {"labels": {"l": "1"}}})).ok()
        (await api.delete(api.core("secrets", name))).ok()

    watchers = [asyncio.create_task(seen()) for _ in range(3)]
    await asyncio.gather(*(live(f"s{n}") for n in range(WRITERS)))
    first, *others = await asyncio.gather(*watchers)
    assert all(other == first for other in others)
    assert await seen() == first, "who comes late is told the same"
    versions = [int(version) for _, _, version in first]
    assert versions == sorted(set(versions))
    for n in range(WRITERS):
        assert [kind for kind, name, _ in first if name == f"s{n}"] == ["ADDED", "MODIFIED", "DELETED"]


def _brief(event: Obj) -> tuple[str, str, str]:
    metadata = event["object"]["metadata"]
    return event["type"], metadata["name"], metadata["resourceVersion"]
