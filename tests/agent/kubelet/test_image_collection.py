"""Unused images are removed when their disk is almost full, the longest unused first."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.kubelet_on_cri import KubeletOnCri, kubelet_on_cri
from shoal.agent.kubelet.cri.image_collection import (
    CollectionRules,
    DiskSpace,
    ImageCollection,
    SeenImage,
    removable,
)
from shoal.agent.protos import cri_pb2 as messages

RULES = CollectionRules()


@pytest.mark.parametrize(
    ("available", "excess"),
    [(1000, 0), (160, 0), (150, 50), (0, 200)],
)
def test_from_the_high_threshold_on_the_use_is_brought_to_the_low_one(available: int, excess: int) -> None:
    assert DiskSpace(1000, available).excess(RULES) == excess


def test_a_disk_of_unknown_size_is_not_full() -> None:
    assert DiskSpace(0, 0).excess(RULES) == 0


def test_the_longest_unused_image_comes_first_and_some_never_do() -> None:
    seen = {
        "young": SeenImage(950.0),
        "pinned": SeenImage(0.0),
        "in-use": SeenImage(0.0, 1000.0),
        "used-late": SeenImage(0.0, 900.0),
        "used-early": SeenImage(0.0, 100.0),
        "never": SeenImage(5.0),
    }
    images = [messages.Image(id=name, pinned=name == "pinned") for name in seen]

    assert [one.id for one in removable(images, seen, 1000.0, RULES)] == ["never", "used-early", "used-late"]


class Collected:
    """Two looks at the images, more than two minutes apart, on a disk with so much space."""

    def __init__(self, machine: KubeletOnCri, available: int) -> None:
        self.told: list[str] = []
        self._space = DiskSpace(1000, 1000)
        self._machine, self._available = machine, available
        self._collection = ImageCollection(machine.calls, machine.cluster.clock, RULES, self._space_of)

    def _space_of(self, path: Path) -> DiskSpace:
        assert path == Path("/images")
        return self._space

    async def run(self) -> None:
        await self._collection.collect(self._tell)
        assert not self.told
        await self._machine.cluster.pass_time(130)
        self._space = DiskSpace(1000, self._available)
        await self._collection.collect(self._tell)

    def _tell(self, reason: str, message: str) -> None:
        self.told.append(f"{reason}: {message}")


@pytest.mark.slow
async def test_images_without_containers_are_removed_from_a_full_disk(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("uses", "serve")
        await machine.until_ready("uses")
        machine.cri.images |= {"other:1", "kept:1", "pause:1"}
        machine.cri.sandbox_image = "pause:1"
        machine.cri.pinned = {"kept:1"}
        collected = Collected(machine, 146)

        await collected.run()

        assert machine.cri.images == {"app:1", "kept:1", "pause:1"}
        words = (
            "Failed to garbage collect required amount of images. Attempted to free 54 bytes, but only found 5 bytes"
        )
        assert collected.told == [f"FreeDiskSpaceFailed: {words} eligible to free."]


@pytest.mark.slow
async def test_no_image_is_removed_while_there_is_space(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        machine.cri.images = {"other:1"}
        collected = Collected(machine, 500)

        await collected.run()

        assert machine.cri.images == {"other:1"}
        assert not collected.told
