"""Applies the MIG layout that the label `nvidia.com/mig.config` of the Node names, as NVIDIA's MIG manager does.

The state is in the label `nvidia.com/mig.config.state`: pending, rebooting, success or failed. Before a change the pods
of the GPU clients (device plugin, feature discovery, exporter) leave the node by their labels
`nvidia.com/gpu.deploy.*`, in order, and they return afterwards. Instances that the scheduler requests on demand
(`devices/mig_demand.py`) are created here as well.

Guarantees: a layout that is impossible, or that needs the place of an instance in use, is refused before anything is
stopped. After a failure the former layout and the clients are restored. All that a change needs to know is in the Node
and on the GPUs, so a process that was killed at any point is continued by the next one. A layout that failed is tried
again when the label changes.

Differences from NVIDIA's: clients that do not leave the node in five minutes fail the change, and are restored; labels
of components that the node does not have are not created.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Literal, TypeVar

import msgspec

from shoal.agent.mig.held_devices import DevicesInUse, has_claims, held_devices
from shoal.agent.mig.layout_change import Change, NodeMig
from shoal.client.clock import Clock
from shoal.client.kind import NODES, PODS
from shoal.client.port import Api, Deletion, Patch, Select
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError
from shoal.devices.gpu_clients import (
    CLIENT_APPS,
    DEPLOY_LABELS,
    OPERATOR_VALIDATOR_APP,
    PAUSED,
    VALIDATOR_APPS,
    after_change,
    while_changing,
)
from shoal.devices.mig_assertions import layout_matches, mode_matches
from shoal.devices.mig_config import MigConfigError, selected_config
from shoal.devices.mig_demand import demand_plan, settings_of
from shoal.devices.mig_layout_checks import Problem
from shoal.devices.mig_layouts import Specs
from shoal.devices.mig_plan import MigPlan, planned
from shoal.units.errors import ConflictError, ShoalError, TemporaryError

_log = logging.getLogger("shoal.agent.mig")
CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
PENDING, REBOOTING, SUCCESS, FAILED = "pending", "rebooting", "success", "failed"
T = TypeVar("T")
_LONGEST_S, _POLL_S, _RETRY_S = 300.0, 1.0, 5.0
_TRIES = 10
Labels = Mapping[str, str]


class MigSettings(msgspec.Struct, frozen=True):
    node: str
    namespace: str = "gpu-operator"
    """Of the GPU clients."""
    configs: Callable[[], Mapping[str, Specs]] | None = None
    """The layouts of a file; raises `MigConfigError`. None: those that are generated for the GPUs."""
    reboot: Callable[[], None] | None = None
    """Restarts the machine, where a new MIG mode needs it and that is allowed."""
    changed: Callable[[], None] | None = None
    """Called after a change of the instances, so that devices, labels and metrics are read again."""
    claimed: Callable[[], frozenset[str]] | None = None
    """The UUIDs of devices in claims of pods. Raises `TemporaryError` if they are not known now. None: no claims get
    devices of this node.
    """
    held: Callable[[], DevicesInUse] | None = None
    """The devices in use, where this process gives them to pods; None: the objects of the pods say it."""
    creates_on_demand: bool = True
    """Whether the device plugin advertises what is created for the scheduler's requests."""
    is_inline: bool = False
    """Call the driver in the event loop and not in a thread; for drivers that answer at once."""


class MigLabelController:
    def __init__(self, api: Api, clock: Clock, mig: NodeMig, settings: MigSettings) -> None:
        self._api, self._clock, self._mig, self._settings = api, clock, mig, settings
        self._recorder = Recorder(api, clock, "shoal-agent")
        self._handled: tuple[str, Mapping[str, str]] | None = None
        """The label and the requests on demand that the last pass dealt with."""

    async def run(self) -> None:
        """Follows the Node until cancelled."""
        events = asyncio.create_task(self._recorder.run())
        select = Select(fields=f"metadata.name={self._settings.node}")
        try:
            while True:
                try:
                    listed = await self._api.list(NODES, select=select)
                    await self.follow()
                    async with aclosing(self._api.watch(NODES, listed.version, select=select)) as batches:
                        async for _ in batches:
                            await self.follow()
                except ShoalError as error:
                    _log.info("node %s cannot be followed: %s", self._settings.node, error)
                    await self._clock.sleep(_RETRY_S)
        finally:
            events.cancel()

    async def follow(self) -> None:
        """One pass: apply what the Node asks for, if that has changed. An error of the cluster ends it; the next pass
        continues.
        """
        metadata = (await self._api.get(NODES, "", self._settings.node)).obj()["metadata"]
        labels: Labels = metadata.get("labels") or {}
        requests = {**labels, **settings_of(metadata.get("annotations") or {})}
        handled = labels.get(CONFIG, ""), settings_of(requests)
        if self._handled == handled:
            return
        await self._look_for_held()
        is_new = self._handled is None or self._handled[0] != handled[0]
        if not handled[0] and labels.get(STATE) in (PENDING, REBOOTING):
            await self._end("", FAILED, f"the label {CONFIG} was removed before its layout was applied")
        if handled[0] and is_new:
            await self._apply(handled[0], labels)
            await self._look_for_held()
        is_done = await self._create_on_demand(requests)
        # What found no room is tried again with the next change of the Node.
        self._handled = handled if is_done else (handled[0], {})

    async def _look_for_held(self) -> None:
        if self._settings.held is not None:
            self._mig.held = self._settings.held()
            return
        pods = await self._api.list(PODS, "", Select(fields=f"spec.nodeName={self._settings.node}"))
        objects = [item.obj() for item in pods.items]
        held, claimed = held_devices(objects), self._settings.claimed
        if claimed is not None and has_claims(objects):
            held = msgspec.structs.replace(held, ids=held.ids | await self._called(claimed))
        self._mig.held = held

    async def _apply(self, config: str, labels: Labels) -> None:
        found = await self._called(self._decide, config)
        if isinstance(found, str):
            await self._end(config, FAILED, f"MIG layout {config} was not applied: {found}")
            return
        plan, is_mode_right = found
        if not plan.steps:
            await self._end(config, SUCCESS)
            return
        if labels.get(STATE) == REBOOTING and not is_mode_right:
            await self._end(config, FAILED, "MIG mode change did not take effect after rebooting")
            return
        await self._label(lambda now: {STATE: PENDING, **_clients(now, while_changing)})
        waiting = await self._clients_left()
        if waiting:
            what = f"the pods of {waiting} are still on the node after {_LONGEST_S:.0f} s"
            await self._end(config, FAILED, f"MIG layout {config} was not applied: {what}")
            return
        for app in VALIDATOR_APPS:
            await self._delete(app)
        # Meanwhile clients may have ended work and pods may have started, so the plan is made again.
        await self._look_for_held()
        found = await self._called(self._decide, config)
        change = None if isinstance(found, str) else await self._called(self._mig.apply, found[0])
        await self._conclude(config, labels, found if isinstance(found, str) else "", change)

    async def _conclude(self, config: str, labels: Labels, refusal: str, change: Change | None) -> None:
        self._tell()
        failure = refusal or (change.failure if change is not None else "")
        if not failure and change is not None and change.resets:
            if self._settings.reboot is not None and labels.get(STATE) != REBOOTING:
                await self._label(lambda _: {STATE: REBOOTING})
                await self._called(self._settings.reboot)
                return
            failure = f"GPU {change.resets[0]} needs a reset for its MIG mode: run nvidia-smi --gpu-reset"
        if failure:
            if change is not None and change.failure and not change.undone:
                failure += "; the former layout could not be restored"
            await self._end(config, FAILED, f"MIG layout {config} was not applied: {failure}")
            return
        await self._delete(OPERATOR_VALIDATOR_APP)
        await self._end(config, SUCCESS, f"MIG layout {config} was applied")

    def _decide(self, config: str) -> tuple[MigPlan, bool] | str:
        """The plan and whether the modes are right, or why the layout is refused."""
        configs = self._settings.configs
        try:
            specs = selected_config(self._mig.layouts() if configs is None else configs(), config)
            present = self._mig.present()
        except MigConfigError as error:
            return str(error)
        except TemporaryError as error:
            return error.what
        gpus = [one.gpu for one in present]
        is_mode_right = mode_matches(specs, gpus)
        if is_mode_right and layout_matches(specs, gpus):
            return MigPlan((), 0), True
        found = planned(specs, present)
        return str(found) if isinstance(found, Problem) else (found, is_mode_right)

    async def _called(self, call: Callable[..., T], *given: Any) -> T:
        return call(*given) if self._settings.is_inline else await asyncio.to_thread(call, *given)

    async def _create_on_demand(self, requests: Mapping[str, str]) -> bool:
        if not self._settings.creates_on_demand:
            return True
        failures = await self._called(self._created, requests)
        for failure in failures:
            self._record(f"MIG on demand: {failure}", is_warning=True)
        return not failures

    def _created(self, requests: Mapping[str, str]) -> list[str]:
        try:
            plan = demand_plan(requests, self._mig.present())
        except TemporaryError as error:
            return [error.what]
        if not plan.steps:
            return list(plan.refusals)
        change = self._mig.apply(MigPlan(plan.steps, 0))
        self._tell()
        return [*plan.refusals, *([change.failure] if change.failure else ())]

    async def _clients_left(self) -> str:
        """Waits until the pods of the clients have left the node, in order; returns the first that stays too long."""
        for app in CLIENT_APPS:
            waited_s = 0.0  # not by the time of day, which can be set meanwhile
            while (await self._pods(app)).items:
                if waited_s >= _LONGEST_S:
                    return app
                await self._clock.sleep(_POLL_S)
                waited_s += _POLL_S
        return ""

    async def _pods(self, app: str) -> Any:
        select = Select(labels=f"app={app}", fields=f"spec.nodeName={self._settings.node}")
        return await self._api.list(PODS, self._settings.namespace, select)

    async def _delete(self, app: str) -> None:
        for item in (await self._pods(app)).items:
            try:
                await self._api.delete(PODS, item.namespace, item.name, Deletion(uid=item.uid))
            except NotFoundError:
                continue

    async def _end(self, config: str, state: str, message: str = "") -> None:
        """`config`: the layout that the pass dealt with."""

        def changes(now: Labels) -> dict[str, str]:
            if now.get(CONFIG, config) != config:
                # Another layout was chosen meanwhile: its pass follows, and this state would be taken for its own.
                return {}
            return {STATE: state, **_clients(now, after_change, only_paused=True)}

        await self._label(changes)
        if message:
            self._record(message, is_warning=state == FAILED)

    async def _label(self, changes: Callable[[Labels], Mapping[str, str]]) -> None:
        """Write what the labels need as they are now, which users may have changed since the pass began."""
        node = self._settings.node
        for left in range(_TRIES - 1, -1, -1):
            read = await self._api.get(NODES, "", node)
            found = changes(read.obj()["metadata"].get("labels") or {})
            if not found:
                return
            metadata = {"resourceVersion": str(read.version), "labels": dict(found)}
            try:
                await self._api.patch(NODES, "", node, Patch("merge", {"metadata": metadata}))
            except ConflictError:
                if not left:
                    raise
            else:
                return

    def _record(self, message: str, *, is_warning: bool) -> None:
        name = self._settings.node
        about = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "uid": name}}
        kind: Literal["Normal", "Warning"] = "Warning" if is_warning else "Normal"
        self._recorder.record(about, "MigConfigFailed" if is_warning else "MigConfigApplied", message, type_=kind)

    def _tell(self) -> None:
        if self._settings.changed is not None:
            self._settings.changed()


def _clients(labels: Labels, value: Callable[[str | None], str], *, only_paused: bool = False) -> dict[str, str]:
    """New values of the labels that the node has. `only_paused`: those that a change has paused."""
    return {
        name: value(labels[name])
        for name in DEPLOY_LABELS
        if name in labels and (not only_paused or labels[name] == PAUSED)
    }
