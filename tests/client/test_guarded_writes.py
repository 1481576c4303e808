"""A change of an object as it was seen: it hits that one and no other, and what is refused is tried later each time."""

from __future__ import annotations

import pytest

from build.scripted_api import ScriptedApi
from build.small_clusters import START_S
from build.virtual_time import virtual
from shoal.client.clock import LoopClock
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS, Kind
from shoal.client.optimistic_update import OptimisticUpdate
from shoal.client.port import Patch
from shoal.client.refusals import ForbiddenError, StaleError


class Answering(ScriptedApi):
    """It takes patches as it is told to, and keeps what they were."""

    def __init__(self, answer: Exception | None = None) -> None:
        super().__init__()
        self.answer = answer
        self.patches: list[tuple[str, Patch]] = []

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        self.patches.append((subresource, patch))
        if self.answer is not None:
            raise self.answer
        return await self.get(kind, namespace, name)

    async def made(self) -> Item:
        return await self.create(CONFIG_MAPS, {"metadata": {"namespace": "n", "name": "a"}})


@virtual
async def test_it_is_the_object_that_was_seen_or_none() -> None:
    api = Answering()
    item = await api.made()
    guarded = OptimisticUpdate(api, LoopClock(START_S), lambda: None)
    assert await guarded.merged(CONFIG_MAPS, item, {"metadata": {"labels": {"x": "y"}}, "status": {"z": 1}}, "status")
    ((subresource, patch),) = api.patches
    assert (subresource, patch.how) == ("status", "merge")
    guard = {"uid": item.uid, "resourceVersion": str(item.version)}
    assert patch.body == {"metadata": {**guard, "labels": {"x": "y"}}, "status": {"z": 1}}
    api.answer = StaleError("somebody was first", reason="Conflict")
    assert not await guarded.merged(CONFIG_MAPS, item, {})


@virtual
async def test_what_is_refused_is_tried_later_each_time() -> None:
    api, clock = Answering(ForbiddenError("not you")), LoopClock(START_S)
    item = await api.made()
    called: list[float] = []
    guarded = OptimisticUpdate(api, clock, lambda: called.append(clock.seconds() - START_S))
    for _ in range(40):
        # Nothing is to be worked out anew: whoever asks is not the reason.
        assert await guarded.merged(CONFIG_MAPS, item, {})
        await clock.sleep(0.5)
    assert [round(moment) for moment in called] == [1, 3, 7, 15]
    assert len(api.patches) == len(called) + 1
    api.answer = None
    await clock.sleep(30)
    assert await guarded.merged(CONFIG_MAPS, item, {})
    assert await guarded.merged(CONFIG_MAPS, item, {})
    assert len(api.patches) == 7


@virtual
async def test_what_is_no_answer_of_a_server_is_not_hidden() -> None:
    api = Answering(ZeroDivisionError())
    item = await api.made()
    with pytest.raises(ZeroDivisionError):
        await OptimisticUpdate(api, LoopClock(START_S), lambda: None).merged(CONFIG_MAPS, item, {})
