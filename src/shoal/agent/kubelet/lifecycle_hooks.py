"""Runs the lifecycle hooks of a container: postStart after its start, preStop before its stop.

The preStop hook is part of the grace period of the container, which has two seconds more if the hook used all of it. As
in Kubernetes a preStop hook can run a second time after the death of this process, and what a hook printed is not
recorded, because Events are read by more users than logs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.agent.kubelet.pod_scene import PodScene
from shoal.agent.kubelet.probes import command_fault, http_status
from shoal.agent.kubelet.runtime import RunKey
from shoal.client.kubelet.pod_run import ContainerRun
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
HANDLERS = ("exec", "httpGet", "sleep")
_AGENT = "kube-lifecycle/1.36"
_LEAST_S = 2.0
"""How long a container may take to end after its preStop hook."""


class LifecycleHooks:
    """Of one container of a pod."""

    def __init__(self, scene: PodScene, one: ContainerRun) -> None:
        self._scene, self._one = scene, one
        self._pre_stop: asyncio.Task[None] | None = None

    def has(self, name: str) -> bool:
        return bool(self._action(name))

    async def post_start(self, key: RunKey) -> None:
        """Run the hook of a container that has started. If it fails, the container is stopped; its restart policy
        decides what follows. The end of the pod ends the hook."""
        action = self._action("postStart")
        if not action:
            return
        hook = asyncio.ensure_future(self._run(action, key))
        stopping = asyncio.ensure_future(self._scene.stopping.wait())
        try:
            await asyncio.wait((hook, stopping), return_when=asyncio.FIRST_COMPLETED)
            is_bad = hook.done() and not hook.result()
        finally:
            await _ended(hook)
            stopping.cancel()
        if is_bad:
            self._scene.tell("FailedPostStartHook", "PostStartHook failed", self._one.name, warns=True)
            self._scene.tell("Killing", "FailedPostStartHook", self._one.name)
            await self.stop(key, float(self._scene.facts.spec.termination_grace_period_seconds))

    def begin_pre_stop(self, key: RunKey) -> None:
        """Start the hook, if it does not run yet; `stop` waits for it."""
        action = self._action("preStop")
        if action and self._pre_stop is None:
            self._pre_stop = asyncio.ensure_future(self._stopping(action, key))

    async def stop(self, key: RunKey, grace_s: float) -> None:
        """Run the hook, and stop the container in what is left of its grace period. May be called again with a shorter
        one while it is running."""
        clock = self._scene.clock
        if grace_s > 0:
            self.begin_pre_stop(key)
        if grace_s > 0 and self._pre_stop is not None:
            began_s, passed = clock.seconds(), asyncio.ensure_future(clock.sleep(grace_s))
            try:
                await asyncio.wait((self._pre_stop, passed), return_when=asyncio.FIRST_COMPLETED)
            finally:
                passed.cancel()
            grace_s = max(grace_s - (clock.seconds() - began_s), _LEAST_S)
        await self.end_pre_stop(is_over=False)
        await self._scene.runtime.stop(key, grace_s)

    async def end_pre_stop(self, *, is_over: bool = True) -> None:
        """End a hook that runs. `is_over`: the container has ended, and its next run has a hook of its own."""
        if self._pre_stop is not None:
            await _ended(self._pre_stop)
            self._pre_stop = None if is_over else self._pre_stop

    def _action(self, name: str) -> Obj:
        lifecycle: Obj = self._scene.spec_of(self._one.name).get("lifecycle") or {}
        return lifecycle.get(name) or {}

    async def _stopping(self, action: Obj, key: RunKey) -> None:
        if not await self._run(action, key):
            self._scene.tell("FailedPreStopHook", "PreStopHook failed", self._one.name, warns=True)

    async def _run(self, action: Obj, key: RunKey) -> bool:
        """Whether it succeeded."""
        scene = self._scene
        try:
            if "exec" in action:
                return not await command_fault(action["exec"].get("command") or (), scene.runtime, key)
            if "httpGet" in action:
                # As for the kubelet, an answer is enough, whatever its status is.
                await http_status(action["httpGet"], scene.spec_of(self._one.name), scene.address, _AGENT)
                return True
            await scene.clock.sleep(float(action["sleep"]["seconds"]))
        except (OSError, TemporaryError):
            return False
        return True


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait((task,))
