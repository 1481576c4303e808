"""Brings the cluster to the state that the ClusterPolicy declares, and keeps it there.

Guarantees: the controller may be killed at any write, and its successor continues from the objects; a change of an
owned object by another client is undone when it is seen; a component that cannot be built or written does not keep the
others from being written; nothing is written where nothing differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    CLUSTER_POLICIES,
    MISPLACED_CLUSTER_POLICIES,
    NVIDIA_DRIVERS,
    SERVICE_MONITORS,
)
from shoal.client.informer import Informer
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import CONFIG_MAPS, DAEMON_SETS, Kind
from shoal.client.loop import Loop
from shoal.client.owner_reference import controlled_by
from shoal.client.refusals import RefusedError
from shoal.client.served import Served
from shoal.controllers.operator.active_policy import ActivePolicy
from shoal.controllers.operator.nodes import OperatedNodes
from shoal.controllers.operator.nvidia_drivers import NvidiaDrivers
from shoal.controllers.operator.owned_objects import OwnedObjects
from shoal.controllers.operator.policies import Policies
from shoal.controllers.operator.views import daemon_set_progress
from shoal.operator.components.build import Building
from shoal.operator.components.component import DRIVER
from shoal.operator.components.desired import DesiredState, desired_states
from shoal.operator.components.driver import config_maps
from shoal.operator.components.driver_remarks import SYSTEMS, WITHOUT_DRIVER, driver_remarks
from shoal.operator.components.facts import FleetFacts, OperatorSettings, fleet_facts
from shoal.operator.policy.active import misplaced_warning
from shoal.operator.policy.config_remarks import config_remarks
from shoal.operator.policy.operands import ConfigReference
from shoal.operator.policy.reading import ReadPolicy, read_cluster_policy
from shoal.operator.policy.spec import ClusterPolicySpec
from shoal.operator.progress.figures import NOT_READY, READY, WITHOUT_POLICY, OperatorFigures
from shoal.operator.progress.policy_status import PolicyStatus, ignored_status, policy_status, state_progress
from shoal.units.errors import UserError

_THE_ONE: Key = ("", "policy")
_GATHER_S = 0.2
"""The delay that combines changes of several objects."""
_NOT_READY_S, _WITHOUT_LABELS_S = 5.0, 45.0


def operator_controller(context: Context, served: Served, settings: OperatorSettings) -> GpuOperator:
    """The caller refreshes `served`."""
    return GpuOperator(context, served, settings)


class GpuOperator:
    def __init__(self, context: Context, served: Served, settings: OperatorSettings) -> None:
        self.name = context.name
        self.figures = OperatorFigures()
        self._context = context
        self._settings = settings
        self._found = asyncio.Event()
        self._policies = Policies(context, settings.namespace)
        self._drivers = NvidiaDrivers(context, self._policies)
        self._loop = Loop(context, self._reconcile, workers=1)
        self._nodes = OperatedNodes(context, settings.namespace, self._wake)
        self._owned = OwnedObjects(context, settings.namespace, lambda _kind, _item: self._wake())
        self._configs = Informer(
            context.api,
            CONFIG_MAPS,
            context.clock,
            context.draw,
            namespace=settings.namespace,
            outage=context.informers.outage,
        )
        self._configs.on_change(self._config_changed)
        self._named: frozenset[str] = frozenset()
        """The ConfigMaps that the policy names."""
        for kind in (CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES):
            served.when_there(kind, self._follow)
        served.when_there(SERVICE_MONITORS, self._follow_monitors)
        served.when_there(NVIDIA_DRIVERS, self._follow_drivers)

    async def run(self) -> None:
        """Runs until cancelled. Nothing is read before the server has ClusterPolicies."""
        await self._found.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._owned.run())
            group.create_task(self._configs.run())
            group.create_task(self._nodes.pods.run())
            group.create_task(self._nodes.nodes.run())
            await self._owned.synced()
            await self._configs.synced()
            await self._nodes.pods.synced()
            await self._nodes.nodes.synced()
            self._wake()
            group.create_task(self._nodes.loop.run())
            group.create_task(self._loop.run())

    def _follow(self, kind: Kind) -> None:
        self._loop.need(kind)
        self._context.informers.of(kind).on_change(lambda _before, _after: self._wake())
        self._found.set()

    def _follow_monitors(self, kind: Kind) -> None:
        self._owned.follow(kind)
        self._wake()

    def _follow_drivers(self, kind: Kind) -> None:
        self._context.informers.of(kind).on_change(lambda _before, _after: self._wake())

    def _config_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and item.name in self._named:
            self._wake()

    def _wake(self) -> None:
        self._loop.wake(_THE_ONE, _GATHER_S)

    async def _reconcile(self, _: Key) -> float | None:
        ranked = self._policies.ranked()
        self.figures.passes += 1
        if not ranked:
            self.figures.state = WITHOUT_POLICY
            self._nodes.policy.put(None)
            return None
        kind, item = ranked[0]
        for other_kind, other in ranked[1:]:
            ignored = ignored_status(item.name)
            self._policies.warn(other_kind, other, "Ignored", (ignored.message,))
            await self._policies.write(other_kind, other, ignored)
        if kind == MISPLACED_CLUSTER_POLICIES:
            self._policies.warn(kind, item, "WrongGroup", (misplaced_warning(item.name),))
        try:
            read = read_cluster_policy(item.obj().get("spec"))
        except UserError as error:
            # The components stay as they are until the policy is corrected.
            status = PolicyStatus("notReady", "ReconcileFailed", str(error))
            self._count(status)
            await self._policies.write(kind, item, status)
            return None
        self._policies.warn(kind, item, "NoEffect", read.warnings)
        return await self._apply(kind, item, read)

    async def _apply(self, kind: Kind, item: Item, read: ReadPolicy) -> float | None:
        self._named = frozenset((*config_maps(read.spec), *(one.name for one in _references(read.spec).values())))
        facts = self._facts(read.spec)
        build = Building(read.spec, facts, self._settings)
        drivers = self._drivers.assigned(build, [one.facts() for one in self._nodes.all()])
        owner = controlled_by(kind, item.name, item.uid)
        owned: list[tuple[DesiredState, Obj]] = []
        for state in desired_states(build):
            owned.append((state, owner))
            if state.component == DRIVER:
                owned += drivers.states()
        states = [state for state, _ in owned]
        components = tuple(dict.fromkeys(one.component for one in states if one.component and _has_pods(one)))
        failed = await self._write(owned)
        self._nodes.policy.put(ActivePolicy(read.spec, components, drivers.pools, keeps_pools=drivers.kept))
        sets = {one.name: daemon_set_progress(one) for one in self._owned.of(DAEMON_SETS)}
        status = policy_status(state_progress(states, sets), facts, failed)
        self.figures.gpu_nodes, self.figures.has_labels = facts.gpu_nodes, facts.has_labels
        self._count(status)
        await self._policies.write(kind, item, status)
        await self._drivers.report(drivers, sets)
        remarks = driver_remarks(read.spec, [one.facts() for one in self._nodes.all()], drivers.pools)
        for reason in (SYSTEMS, WITHOUT_DRIVER):
            self._policies.warn(kind, item, reason, tuple(words for one, words in remarks if one == reason))
        self._remark(kind, item, read.spec)
        if not status.is_ready:
            return _NOT_READY_S
        return None if facts.has_labels else _WITHOUT_LABELS_S

    def _count(self, status: PolicyStatus) -> None:
        self.figures.state = READY if status.is_ready else NOT_READY
        self.figures.failed += status.reason == "ReconcileFailed"
        if status.is_ready:
            self.figures.succeeded_at_s = self._context.clock.seconds()

    def _remark(self, kind: Kind, item: Item, spec: ClusterPolicySpec) -> None:
        """Record Events about ConfigMaps that do not exist or have no effect."""
        references = _references(spec)
        present = [one.name for one in references.values() if one.name and self._config(one.name) is not None]
        labels = [one.metadata.labels for one in self._nodes.all() if one.facts().has_gpus]
        remarks = config_remarks(references, labels, present)
        for reason in ("ConfigMapNotFound", "NoDefaultConfig"):
            self._policies.warn(kind, item, reason, tuple(words for one, words in remarks if one == reason))

    def _config(self, name: str) -> Item | None:
        return self._configs.get(self._settings.namespace, name)

    def _facts(self, spec: ClusterPolicySpec) -> FleetFacts:
        found = {name: item for name in config_maps(spec) if (item := self._config(name)) is not None}
        keys = {name: tuple(sorted(item.obj().get("data") or {})) for name, item in found.items()}
        nodes = [one.facts() for one in self._nodes.all()]
        return fleet_facts(nodes, keys, has_service_monitors=self._owned.has(SERVICE_MONITORS))

    async def _write(self, owned: Sequence[tuple[DesiredState, Obj]]) -> list[str]:
        """Returns the refusals; the other objects are written nevertheless."""
        failed = []
        for state, owner in owned:
            for obj in state.objects:
                try:
                    await self._owned.put(obj, owner)
                except RefusedError as error:
                    failed.append(f"{obj['kind']} {obj['metadata']['name']}: {error}")
        states = [state for state, _ in owned]
        wanted = {(one["kind"], one["metadata"]["name"]) for state in states for one in state.objects}
        kept = [one.component.name for one in states if one.fault and one.component is not None]
        await self._owned.remove_others(wanted, kept)
        return failed


def _references(spec: ClusterPolicySpec) -> dict[str, ConfigReference]:
    """By the component's field."""
    return {
        "devicePlugin": spec.device_plugin.config,
        "migManager": spec.mig_manager.config,
        "dcgmExporter": ConfigReference(spec.dcgm_exporter.config.name),
    }


def _has_pods(state: DesiredState) -> bool:
    return any(one["kind"] == "DaemonSet" for one in state.objects)
