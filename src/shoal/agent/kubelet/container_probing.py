"""Probes one run of a container after the other: sets its health, and stops a run whose probe fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from shoal.agent.kubelet.lifecycle_hooks import LifecycleHooks
from shoal.agent.kubelet.pod_scene import PodScene
from shoal.agent.kubelet.probes import check_once, verdicts
from shoal.agent.kubelet.runtime import RunKey
from shoal.client.kubelet.pod_run import ContainerRun
from shoal.client.kubelet.probe_result import ProbeResult

Obj = dict[str, Any]


class ContainerProbing:
    def __init__(self, scene: PodScene, one: ContainerRun, started: asyncio.Event, hooks: LifecycleHooks) -> None:
        """`started`: set when the container has started by its startup probe."""
        self._scene, self._one, self._started, self._hooks = scene, one, started, hooks
        self._is_failing = False

    def take_failure(self) -> bool:
        """Whether a probe has stopped the run that has ended."""
        was_failing, self._is_failing = self._is_failing, False
        return was_failing

    async def run(self) -> None:
        """Until cancelled, or until a probe has decided that the container is to be restarted."""
        spec = self._scene.spec_of(self._one.name)
        if "startupProbe" in spec and not self._one.is_started:
            started = False

            def decide(is_good: bool, fault: str) -> bool:
                nonlocal started
                started = is_good
                if not is_good:
                    self._unhealthy("Startup", fault)
                return True

            await self._probe("startupProbe", spec, decide)
            if not started:
                await self._restart("startup")
                return
        self._set_health("unready" if "readinessProbe" in spec else "ready")
        self._started.set()
        waits: list[Awaitable[None]] = []
        if "readinessProbe" in spec:
            waits.append(self._probe("readinessProbe", spec, self._readiness))
        if "livenessProbe" in spec:
            waits.append(self._liveness(spec))
        if waits:
            await asyncio.gather(*waits)

    async def _probe(self, name: str, spec: Obj, decide: Callable[[bool, str], bool]) -> None:
        scene, probe = self._scene, spec[name]

        async def check() -> str | None:
            fault = await check_once(probe, spec, scene.runtime, self._key(), scene.address)
            if fault is not None:
                kind = name.removesuffix("Probe").capitalize()
                scene.probed[ProbeResult(self._one.name, kind, "failed" if fault else "successful")] += 1
            return fault

        await verdicts(probe, check, scene.clock.sleep, decide)

    def _readiness(self, is_good: bool, fault: str) -> bool:
        if not is_good:
            self._unhealthy("Readiness", fault)
        self._set_health("ready" if is_good else "failing")
        return False

    async def _liveness(self, spec: Obj) -> None:
        def decide(is_good: bool, fault: str) -> bool:
            if not is_good:
                self._unhealthy("Liveness", fault)
            return not is_good

        await self._probe("livenessProbe", spec, decide)
        await self._restart("liveness")

    async def _restart(self, probe: str) -> None:
        scene, one = self._scene, self._one
        scene.tell("Killing", f"Container {one.name} failed {probe} probe, will be restarted", one.name)
        self._is_failing = True
        own = (scene.spec_of(one.name).get(f"{probe}Probe") or {}).get("terminationGracePeriodSeconds")
        await self._hooks.stop(
            self._key(), float(scene.facts.spec.termination_grace_period_seconds if own is None else own)
        )

    def _unhealthy(self, probe: str, fault: str) -> None:
        self._scene.tell("Unhealthy", f"{probe} probe failed: {fault}", self._one.name, warns=True)

    def _set_health(self, health: Any) -> None:
        one = self._one
        if one.step == "running" and one.health != health:
            one.health, one.health_since_s = health, self._scene.clock.seconds()
            self._scene.changed()

    def _key(self) -> RunKey:
        return RunKey(self._scene.run.uid, self._one.name, self._one.restarts)
