"""Provides images by the pull policy of a container, with the kubelet's reasons, Events and delays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.agent.kubelet.cri.calls import CallFailedError, RuntimeCalls
from shoal.agent.kubelet.cri.registry_logins import RegistryLogin
from shoal.agent.kubelet.runtime import StartRefused
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.clock import Clock

_FIRST_S, _LONGEST_S = 10.0, 300.0
_SHOWN_S = 2.0
"""How long a container shows ErrImagePull before it shows that it waits for the next try."""


class Images:
    """Concurrent requests for one image pull it once."""

    def __init__(self, calls: RuntimeCalls, clock: Clock) -> None:
        self._calls, self._clock = calls, clock
        self._locks: dict[str, asyncio.Lock] = {}
        self._failures: dict[str, tuple[int, float, str]] = {}
        """By image: the failed pulls in a row, when the next is due, and the last message."""

    async def provide(
        self, image: str, policy: str, logins: Sequence[RegistryLogin], tell: Callable[..., None]
    ) -> messages.Image:
        """`tell` records an Event. Raises StartRefused."""
        async with self._locks.setdefault(image, asyncio.Lock()):
            found = await self._inspected(image)
            if policy == "Never" and found is None:
                words = f'Container image "{image}" is not present with pull policy of Never'
                tell("ErrImageNeverPull", words, warns=True)
                tell("Failed", "Error: ErrImageNeverPull", warns=True)
                raise StartRefused("ErrImageNeverPull", words, is_told=True)
            if found is not None and policy != "Always":
                self._failures.pop(image, None)
                tell("Pulled", f'Container image "{image}" already present on machine')
                return found
            return await self._pulled(image, logins, tell)

    async def _pulled(self, image: str, logins: Sequence[RegistryLogin], tell: Callable[..., None]) -> messages.Image:
        count, due_s, last = self._failures.get(image, (0, 0.0, ""))
        left_s = due_s - self._clock.seconds()
        if left_s > 0:
            words = f'Back-off pulling image "{image}"'
            tell("BackOff", words)
            tell("Failed", "Error: ImagePullBackOff", warns=True)
            raise StartRefused("ImagePullBackOff", f"{words}: ErrImagePull: {last}", retry_s=left_s, is_told=True)
        tell("Pulling", f'Pulling image "{image}"')
        begun_s = self._clock.seconds()
        try:
            await self._calls.pull(named(image), next((one.auth() for one in logins if one.fits(image)), None))
            found = await self._inspected(image)
            if found is None:
                raise CallFailedError("NotFound", f"the runtime pulled {image} and does not have it")
        except CallFailedError as error:
            delay_s = min(_FIRST_S * float(1 << min(count, 10)), _LONGEST_S)
            self._failures[image] = (count + 1, self._clock.seconds() + delay_s, str(error))
            tell("Failed", f'Failed to pull image "{image}": {error}', warns=True)
            tell("Failed", "Error: ErrImagePull", warns=True)
            raise StartRefused("ErrImagePull", str(error), retry_s=_SHOWN_S, is_told=True) from None
        self._failures.pop(image, None)
        took_s = self._clock.seconds() - begun_s
        tell("Pulled", f'Successfully pulled image "{image}" in {took_s:.3f}s. Image size: {found.size} bytes.')
        return found

    async def _inspected(self, image: str) -> messages.Image | None:
        try:
            return await self._calls.image(named(image))
        except CallFailedError as error:
            raise StartRefused("ImageInspectError", f'Failed to inspect image "{image}": {error}') from None


def named(image: str) -> str:
    """With the tag that the kubelet adds."""
    return image if ":" in image.rpartition("/")[2] or "@" in image else f"{image}:latest"
