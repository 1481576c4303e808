"""Quotas that come, grow and go among many writers, on a storage that fails by chance: what they say is so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from build.planes import Operations, config_map, operations
from shoal.embedded.apiserver.resource import Home, Obj
from shoal.embedded.apiserver.state.event import Event
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.embedded.apiserver.storage.port import StorageFault, StoredChange

QUOTAS = Home("", "resourcequotas")
MAPS = Home("", "configmaps")
_PATIENCE_S = 60


class RoughStorage(MemoryStorage):
    """Takes its time, and fails by chance."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self.share_failing = 0.0
        self.failed = 0

    async def commit(self, batch: Sequence[StoredChange]) -> None:
        for _ in range(self._random.randrange(6)):
            await asyncio.sleep(0)
        if self._random.random() < self.share_failing:
            self.failed += 1
            raise StorageFault("by chance")
        await super().commit(batch)


class Auditor:
    """Looks at every quota with every commit."""

    def __init__(self, api: Operations) -> None:
        self._api = api
        self.seen = 0
        self.wrong: list[tuple[str, str, int]] = []
        api.state.on_commit(self._look)

    def _look(self, _: Sequence[Event]) -> None:
        maps = len(self._api.state.list(MAPS, "default").records)
        for record in self._api.state.list(QUOTAS, "default").records:
            quota = record.obj()
            hard, status = quota["spec"]["hard"], quota.get("status") or {}
            if status.get("hard") != hard:
                continue
            self.seen += 1
            used = status["used"]["count/configmaps"]
            if int(used) != maps:
                self.wrong.append((record.ref.name, used, maps))


async def write(api: Operations, random: Random, allowed: dict[str, int]) -> None:
    for _ in range(30):
        does = random.choices(("create", "delete", "grow", "drop"), (50, 30, 12, 8))[0]
        name = f"m{random.randrange(40)}"
        try:
            if does == "create":
                await api.create("configmaps", config_map(name))
            elif does == "delete":
                await api.delete("configmaps", name)
            elif does == "drop":
                await api.delete("resourcequotas", random.choice("ab"))
            else:
                await grown(api, random.choice("ab"), random.randrange(5, 40))
        except ApiError as error:
            allowed[f"{error.code}"] = allowed.get(f"{error.code}", 0) + 1


async def grown(api: Operations, name: str, most: int) -> None:
    """Another size of the quota, or a new quota."""
    spec: Obj = {"hard": {"count/configmaps": str(most)}}
    found = api.find("resourcequotas", name)
    if found is None:
        await api.create("resourcequotas", {"metadata": {"name": name}, "spec": spec})
        return
    quota = found.obj()
    del quota["metadata"]["resourceVersion"]
    await api.update("resourcequotas", {**quota, "spec": spec})


@pytest.mark.parametrize("seed", range(4))
async def test_what_a_quota_says_is_what_is_there_with_every_commit(seed: int, tmp_path: Path) -> None:
    storage = RoughStorage(Random(seed))
    async with operations(tmp_path, storage) as api, asyncio.timeout(_PATIENCE_S):
        auditor, refusals = Auditor(api), dict[str, int]()
        storage.share_failing = 0.15
        await asyncio.gather(*(write(api, Random(seed * 100 + number), refusals) for number in range(16)))
        storage.share_failing = 0.0
        await grown(api, "a", 50)
        for _ in range(200):
            await asyncio.sleep(0)
        assert _are_counted(api)
        assert not auditor.wrong
        assert auditor.seen > 30
        assert storage.failed
        assert {"403", "500"} <= set(refusals) <= {"403", "404", "409", "500"}


def _are_counted(api: Operations) -> bool:
    quotas = [record.obj() for record in api.state.list(QUOTAS, "default").records]
    return all((quota.get("status") or {}).get("hard") == quota["spec"]["hard"] for quota in quotas)
