"""Runs the containers of one pod in the kubelet's order: init containers, sidecars, the others; and stops them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from shoal.agent.kubelet.container_worker import ContainerWorker
from shoal.agent.kubelet.pod_scene import PodScene
from shoal.client.kubelet.pod_run import ContainerRun


class PodWorker:
    def __init__(self, scene: PodScene) -> None:
        self._scene = scene
        self._workers = [ContainerWorker(scene, one) for one in scene.run.containers]
        self._stop: asyncio.Task[None] | None = None
        self._grace = asyncio.Event()

    async def work(self) -> None:
        """Returns when all containers have ended; the run has its phase then."""
        scene, run = self._scene, self._scene.run
        run.step = "running"
        sidecars: list[asyncio.Task[None]] = []
        tasks: list[asyncio.Task[None]] = []
        deadline = self._deadline()
        try:
            if await self._initialized(sidecars):
                for worker, _ in self._of("main"):
                    tasks.append(asyncio.ensure_future(worker.work()))
                    if worker.has_post_start:
                        await worker.attempted.wait()
                await asyncio.gather(*tasks)
            if self._stop is not None:
                await self._stop
            await self._end_sidecars(sidecars)
        finally:
            for task in (*tasks, *sidecars, *([self._stop] if self._stop is not None else ())):
                task.cancel()
            if deadline is not None:
                deadline.cancel()
        for one in run.containers:
            one.step = "ended"
        run.phase = run.phase or self._outcome()
        run.step, run.since_s = "over", scene.clock.seconds()
        scene.changed()

    def stop(self, grace_s: float) -> None:
        """Stop all containers. On a repeated call, the shorter period applies."""
        scene, run = self._scene, self._scene.run
        if run.stop_since_s is not None and grace_s >= run.grace_s:
            if self._stop is None:
                self._stop = asyncio.ensure_future(self._stopped(run.grace_s))
            return
        run.grace_s = grace_s
        if run.stop_since_s is None:
            run.stop_since_s = scene.clock.seconds()
        scene.stopping.set()
        scene.changed()
        if self._stop is not None:
            self._stop.cancel()
        self._stop = asyncio.ensure_future(self._stopped(grace_s))

    def fail(self, reason: str, message: str, grace_s: float | None = None) -> bool:
        """Stop the pod, which fails. `grace_s`: shorter than its own. Returns whether it had not ended before."""
        run = self._scene.run
        if run.is_over or run.phase:
            return False
        own_s = float(self._scene.facts.spec.termination_grace_period_seconds)
        run.phase, run.reason, run.message = "Failed", reason, message
        self.stop(own_s if grace_s is None else min(grace_s, own_s))
        return True

    async def _stopped(self, grace_s: float) -> None:
        since_s = self._scene.run.stop_since_s or self._scene.clock.seconds()
        until_s = since_s + grace_s
        # Sidecars end after the containers that use them, within the same period; their hooks do not wait.
        if grace_s > 0:
            for worker, _ in self._of("sidecar"):
                worker.prepare_stop()
        await self._stop_all([worker for role in ("init", "main") for worker, _ in self._of(role)], until_s)
        for worker, _ in reversed(self._of("sidecar")):
            await self._stop_all([worker], until_s)

    async def _stop_all(self, workers: Sequence[ContainerWorker], until_s: float) -> None:
        left_s = max(until_s - self._scene.clock.seconds(), 0.0)
        await asyncio.gather(*(worker.stop(left_s) for worker in workers))

    async def _initialized(self, sidecars: list[asyncio.Task[None]]) -> bool:
        """Whether the other containers may start."""
        scene = self._scene
        for worker, one in zip(self._workers, scene.run.containers, strict=True):
            if one.role == "main":
                continue
            if scene.stopping.is_set() and not one.is_alive:
                return False
            task = asyncio.ensure_future(worker.work())
            if one.role == "sidecar":
                sidecars.append(task)
                await worker.started.wait()
                continue
            try:
                await task
            finally:
                task.cancel()
            if one.ended is None or one.ended.code != 0:
                return False
        return not scene.stopping.is_set() or any(one.is_alive for one in scene.run.of("main"))

    async def _end_sidecars(self, sidecars: list[asyncio.Task[None]]) -> None:
        scene = self._scene
        if not sidecars:
            return
        if scene.run.stop_since_s is None:
            scene.run.stop_since_s = scene.clock.seconds()
        scene.stopping.set()
        until_s = scene.clock.seconds() + scene.facts.spec.termination_grace_period_seconds
        for worker, _ in self._of("sidecar"):
            worker.prepare_stop()
        for worker, _ in reversed(self._of("sidecar")):
            await self._stop_all([worker], until_s)
        await asyncio.gather(*sidecars)

    def _of(self, role: str) -> list[tuple[ContainerWorker, ContainerRun]]:
        both = zip(self._workers, self._scene.run.containers, strict=True)
        return [(worker, one) for worker, one in both if one.role == role]

    def _outcome(self) -> str:
        mains = self._scene.run.of("main")
        return "Succeeded" if all(one.ended is not None and one.ended.code == 0 for one in mains) else "Failed"

    def _deadline(self) -> asyncio.TimerHandle | None:
        scene = self._scene
        limit_s = scene.facts.spec.active_deadline_seconds
        if limit_s is None:
            return None
        words = "Pod was active on the node longer than the specified deadline"
        ring: Callable[[], object] = lambda: self.fail("DeadlineExceeded", words)  # noqa: E731
        return scene.clock.call_later(scene.run.admitted_s + limit_s - scene.clock.seconds(), ring)
