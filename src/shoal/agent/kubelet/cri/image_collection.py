"""Removes unused images when the disk that has them is almost full, by the kubelet's rules.

Above the high threshold images are removed until the use is at the low one: those that no container has, the longest
unused first. An image that is younger than two minutes stays, because its container may be about to be created, and so
do those that the runtime has pinned, and the one of sandboxes, which earlier versions of containerd do not pin.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.clock import Clock

_log = logging.getLogger("shoal.agent.kubelet")
_EVERY_S = 300.0
Report = Callable[[str, str], None]
"""Records an Event about the Node: its reason and its message."""


class CollectionRules(msgspec.Struct, frozen=True):
    high_percent: int = 85
    low_percent: int = 80
    least_age_s: float = 120.0


class DiskSpace(msgspec.Struct, frozen=True):
    capacity: int
    available: int

    def excess(self, rules: CollectionRules) -> int:
        """The bytes to free; 0 below the high threshold."""
        if self.capacity <= 0 or 100 - self.available * 100 // self.capacity < rules.high_percent:
            return 0
        return self.capacity * (100 - rules.low_percent) // 100 - self.available


class SeenImage(msgspec.Struct):
    since_s: float
    used_s: float = 0.0


def disk_space(path: Path) -> DiskSpace:
    """Raises OSError."""
    found = os.statvfs(path)
    return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def removable(
    images: Iterable[messages.Image], seen: Mapping[str, SeenImage], now_s: float, rules: CollectionRules
) -> Sequence[messages.Image]:
    """In the order in which they are removed. An image in use was used now."""

    def is_free(image: messages.Image) -> bool:
        one = seen[image.id]
        return not image.pinned and one.used_s < now_s and now_s - one.since_s >= rules.least_age_s

    return sorted(filter(is_free, images), key=lambda image: (seen[image.id].used_s, seen[image.id].since_s, image.id))


class ImageCollection:
    def __init__(
        self,
        calls: RuntimeCalls,
        clock: Clock,
        rules: CollectionRules | None = None,
        space_of: Callable[[Path], DiskSpace] = disk_space,
    ) -> None:
        self._calls, self._clock = calls, clock
        self._rules, self._space_of = rules or CollectionRules(), space_of
        self._seen: dict[str, SeenImage] = {}

    async def run(self, report: Report) -> None:
        """Runs until cancelled."""
        while True:
            try:
                await self.collect(report)
            except (CallFailedError, OSError) as error:
                _log.info("unused images are not removed now: %s", error)
            await self._clock.sleep(_EVERY_S)

    async def collect(self, report: Report) -> None:
        """Raises CallFailedError and OSError."""
        now_s = self._clock.seconds()
        images = await self._looked_at(now_s)
        excess = max(
            (self._space_of(Path(one)).excess(self._rules) for one in await self._calls.image_disks()), default=0
        )
        if excess <= 0:
            return
        freed = 0
        for image in removable(images, self._seen, now_s, self._rules):
            if freed >= excess:
                break
            _log.info("the disk is almost full: image %s is removed", next(iter(image.repo_tags), image.id))
            await self._calls.remove_image(image.id)
            del self._seen[image.id]
            freed += image.size
        if freed < excess:
            words = "Failed to garbage collect required amount of images. Attempted to free "
            report("FreeDiskSpaceFailed", f"{words}{excess} bytes, but only found {freed} bytes eligible to free.")

    async def _looked_at(self, now_s: float) -> Sequence[messages.Image]:
        """All images. Notes since when each is known, and which are in use."""
        images = await self._calls.images()
        used = {one.image_ref for one in await self._calls.containers({})} | {await self._calls.sandbox_image()}
        self._seen = {one.id: self._seen.get(one.id) or SeenImage(now_s) for one in images}
        for image in images:
            if used & {image.id, *image.repo_tags, *image.repo_digests}:
                self._seen[image.id].used_s = now_s
        return images
