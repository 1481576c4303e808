"""Runs one container of a pod: starts it, probes it, and restarts it with the kubelet's delays until it has ended.

All progress is in the `ContainerRun`, and is stored before each step, so that a later process continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from shoal.agent.kubelet.container_probing import ContainerProbing
from shoal.agent.kubelet.lifecycle_hooks import LifecycleHooks
from shoal.agent.kubelet.pod_scene import PodScene
from shoal.agent.kubelet.runtime import Exit, RunKey, Started, StartRefused
from shoal.client.kubelet.back_off import back_off_s
from shoal.client.kubelet.pod_run import ContainerRun, Ended
from shoal.client.kubelet.restart_policy import restarts
from shoal.units.errors import TemporaryError

T = TypeVar("T")
_FORGIVEN_S = 600.0
"""A container that ran so long is no longer in its back-off."""


class ContainerWorker:
    def __init__(self, scene: PodScene, one: ContainerRun) -> None:
        self._scene, self._one = scene, one
        self.started = asyncio.Event()
        """Set when it has started by its startup probe, or has ended."""
        self.attempted = asyncio.Event()
        """Set when its first start has succeeded, with its postStart hook, or has failed."""
        self._is_tried = False
        self._hooks = LifecycleHooks(scene, one)
        self._probing = ContainerProbing(scene, one, self.started, self._hooks)

    @property
    def key(self) -> RunKey:
        return RunKey(self._scene.run.uid, self._one.name, self._one.restarts)

    async def work(self) -> None:
        """Returns when the container has ended and is not restarted."""
        scene, one = self._scene, self._one
        try:
            while one.step != "ended":
                if one.step == "crashed" and not await self._backed_off():
                    break
                is_found = one.is_alive
                if not is_found and not await self._started():
                    break
                await self._ran(is_found=is_found)
        finally:
            self.attempted.set()
            if one.step == "ended":
                self.started.set()
        if one.step != "ended":
            one.step, one.since_s = "ended", scene.clock.seconds()
            self.started.set()
            scene.changed()

    @property
    def has_post_start(self) -> bool:
        return self._hooks.has("postStart")

    def prepare_stop(self) -> None:
        """Start the preStop hook; `stop` follows. For a sidecar, whose stop has to wait for other containers."""
        if self._one.is_alive and self._hooks.has("preStop"):
            self._stopping()
            self._hooks.begin_pre_stop(self.key)

    async def stop(self, grace_s: float) -> None:
        if self._one.is_alive:
            self._stopping()
            await self._hooks.stop(self.key, grace_s)

    def _stopping(self) -> None:
        one = self._one
        if one.step == "running":
            self._scene.tell("Killing", f"Stopping container {one.name}", one.name)
            one.step, one.since_s, one.health = "stopping", self._scene.clock.seconds(), "unready"
            self._scene.changed()

    async def _started(self) -> bool:
        """Whether it was started; False if the pod is stopped first."""
        scene, one = self._scene, self._one
        while not scene.stopping.is_set():
            try:
                started = await self._found_or_started()
            except (StartRefused, TemporaryError) as error:
                self.attempted.set()
                await self._refused(error)
                continue
            if started is None:
                break
            self.attempted.set()
            now_s = scene.clock.seconds()
            one.step, one.since_s, one.started_s, one.health = "running", now_s, now_s, "starting"
            one.id, one.image_id = started.id, started.image_id
            one.waiting_reason = one.waiting_message = ""
            scene.changed()
            if scene.stopping.is_set():
                await self.stop(scene.run.grace_s)
            return True
        if self._is_tried:
            # A start that failed may have had its effect later.
            await scene.runtime.stop(self.key, 0.0)
        return False

    async def _found_or_started(self) -> Started | None:
        """None: the pod is stopped before the start. Nothing has to be stored before: the run is found by its key."""
        scene, one = self._scene, self._one
        found = await scene.runtime.find(self.key)
        if found is not None:
            return found
        launch = await self._unless_stopped(scene.launch_of(one.name))
        if launch is None:
            return None
        one.image, self._is_tried = launch.image, True
        started = await scene.runtime.start(self.key, launch)
        if launch.container is not None:
            scene.tell("Created", "Container created", one.name)
        scene.tell("Started", "Container started", one.name)
        await self._hooks.post_start(self.key)
        return started

    async def _refused(self, error: StartRefused | TemporaryError) -> None:
        scene, one = self._scene, self._one
        refused = error if isinstance(error, StartRefused) else StartRefused("CreateContainerError", str(error))
        is_new = (one.waiting_reason, one.waiting_message) != (refused.reason, refused.message)
        if is_new and not refused.is_told:
            scene.tell("Failed", f"Error: {refused.message}", one.name, warns=True)
        one.step, one.health = "waiting", ""
        one.waiting_reason, one.waiting_message = refused.reason, refused.message
        scene.changed()
        await self._pause(refused.retry_s)

    async def _unless_stopped(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Its result; None if the pod is stopped first, which ends the work."""
        scene = self._scene
        task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(scene.stopping.wait())
        try:
            await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            stopped.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))

    async def _ran(self, *, is_found: bool) -> None:
        """Wait for the end of the present run and decide what follows. `is_found`: an earlier process started it."""
        scene = self._scene
        probing = asyncio.ensure_future(self._probing.run())
        try:
            if is_found and await self._found() is None:
                # It was started, so its pod's policy decides whether there is another run.
                ended = Exit(
                    137, 0.0, 0.0, "ContainerStatusUnknown", "the runtime does not know the container any more"
                )
            else:
                ended = await scene.runtime.wait(self.key)
        finally:
            probing.cancel()
            with suppress(asyncio.CancelledError):
                await probing
            await self._hooks.end_pre_stop()
        self._end(ended)

    async def _found(self) -> Started | None:
        """Returns when it is known."""
        while True:
            try:
                return await self._scene.runtime.find(self.key)
            except TemporaryError as error:
                await self._scene.clock.sleep(error.delay_s)

    def _end(self, ended: Exit) -> None:
        scene, one, now_s = self._scene, self._one, self._scene.clock.seconds()
        reason = ended.reason or ("Error" if ended.code else "Completed")
        message = ended.message or scene.last_words(self.key, ended.code)
        started_s = ended.started_s or one.started_s
        one.ended = Ended(started_s, ended.finished_s, ended.code, reason, message, one.id)
        one.health, one.since_s = "", now_s
        if ended.reason == "StartError":
            scene.tell("Failed", f"Error: {ended.message}", one.name, warns=True)
        was_failing = self._probing.take_failure()
        again = restarts(scene.facts, scene.run, one, ended.code) or (was_failing and self._may_restart())
        if scene.stopping.is_set() or not again:
            one.step = "ended"
        else:
            one.crashes = 1 if ended.finished_s - one.started_s >= _FORGIVEN_S else one.crashes + 1
            one.step = "crashed"
        scene.changed()

    def _may_restart(self) -> bool:
        return self._scene.facts.spec.restart_policy != "Never"

    async def _backed_off(self) -> bool:
        """Whether it is to be restarted; False if the pod is stopped."""
        scene, one = self._scene, self._one
        wait_s = one.since_s + back_off_s(one.crashes) - scene.clock.seconds()
        if wait_s > 0:
            words = f"Back-off restarting failed container {one.name} in pod {scene.run.name}_{scene.run.namespace}"
            scene.tell("BackOff", f"{words}({scene.run.uid})", one.name, warns=True)
            await self._pause(wait_s)
        if scene.stopping.is_set():
            return False
        one.restarts += 1
        one.step = "waiting"
        return True

    async def _pause(self, wait_s: float) -> None:
        """Wait, but not longer than until the pod is stopped."""
        stopped = asyncio.ensure_future(self._scene.stopping.wait())
        passed = asyncio.ensure_future(self._scene.clock.sleep(wait_s))
        try:
            await asyncio.wait((stopped, passed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            passed.cancel()
