"""Detects whether the project that owns a kind runs in the cluster; Shoal then leaves its decisions to it.

The project runs if its leader renews a Lease, or if its Deployment has ready pods. Two systems that admit the same
workloads would assign the same quota twice.

Guarantees: only the namespace where the project is installed is read. Otherwise any user with a namespace could disable
the queues of the cluster with a Lease or a Deployment of these names.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import msgspec

from shoal.api.lease import Lease
from shoal.api.run_configuration import ProjectNamespaces
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import DEPLOYMENTS, LEASES, Kind
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.units.errors import ShoalError

_log = logging.getLogger("shoal.queues")
_EVERY_S = 15.0
_LEAST_S = 30.0
_USUAL = ProjectNamespaces()


class Sign(msgspec.Struct, frozen=True):
    """The objects that show whether a project runs."""

    project: str
    namespace: str
    """The namespace of its usual installation."""
    leases: tuple[str, ...]
    deployments: tuple[str, ...]
    does: str = "admission"
    """The task of the project."""


KUEUE = Sign("Kueue", _USUAL.kueue, ("c1f6bfd2.kueue.x-k8s.io",), ("kueue-controller-manager",))
KAI = Sign(
    "KAI", _USUAL.kai, ("kai-scheduler-default",), ("kai-scheduler-default", "queue-controller", "podgroup-controller")
)
VOLCANO = Sign("Volcano", _USUAL.volcano, ("volcano", "vc-scheduler"), ("volcano-scheduler",))
KEDA = Sign("KEDA", "keda", ("operator.keda.sh",), ("keda-operator",), "ScaledObjects")
SCHEDULER_PLUGINS = Sign(
    "SchedulerPlugins",
    _USUAL.scheduler_plugins,
    ("sched-plugins-controllers",),
    ("scheduler-plugins-controller",),
    "the status of its pod groups",
)

KARPENTER = tuple(
    Sign("Karpenter", namespace, ("karpenter-leader-election",), ("karpenter",), "the provisioning of nodes")
    for namespace in ("kube-system", "karpenter")
)
"""In each of the namespaces in which it is usually installed."""
CLUSTER_AUTOSCALER = Sign(
    "ClusterAutoscaler", "kube-system", ("cluster-autoscaler",), ("cluster-autoscaler",), "the provisioning of nodes"
)


class _DeploymentStatus(msgspec.Struct, rename="camel"):
    ready_replicas: int = 0


class _Deployment(msgspec.Struct):
    status: _DeploymentStatus = msgspec.field(default_factory=_DeploymentStatus)


class Presence:
    def __init__(self, context: Context, sign: Sign, namespace: str = "") -> None:
        self._context = context
        self._sign = sign
        self._namespace = namespace or sign.namespace
        self.is_there = False
        self._then: list[Callable[[], None]] = []

    def on_change(self, then: Callable[[], None]) -> None:
        """`then` is called whenever the project starts or stops."""
        self._then.append(then)

    async def look(self) -> None:
        """Check once; a missing or unreadable answer changes nothing."""
        try:
            by = await self._seen()
        except (ShoalError, msgspec.DecodeError) as error:
            _log.info("cannot find out whether %s runs: %s", self._sign.project, error)
            return
        if (by is not None) != self.is_there:
            self.is_there = by is not None
            for then in self._then:
                then()
            does = self._sign.does
            reported = "decided" if does == "admission" else "told"
            state = f"runs in this cluster: {does} is left to it" if by else f"is gone: {does} is {reported} here"
            _log.warning("%s %s", self._sign.project, state)
            if by is not None:
                self._context.events.record(
                    by, f"LeftTo{self._sign.project}", f"{self._sign.project} {state}", type_="Warning"
                )

    async def run(self, moved: Callable[[], None]) -> None:
        """Runs until cancelled; `moved` is called when the project starts or stops."""
        while True:
            before = self.is_there
            await self.look()
            if before != self.is_there:
                moved()
            await self._context.clock.sleep(_EVERY_S)

    async def _seen(self) -> Obj | None:
        """The object that shows that the project runs. If the permission for one of the two is missing, the other one
        decides.
        """
        failed: list[ShoalError | msgspec.DecodeError] = []
        for ask in (self._leader, self._deployment):
            try:
                by = await ask()
            except (ShoalError, msgspec.DecodeError) as error:
                failed.append(error)
            else:
                if by is not None:
                    return by
        if len(failed) > 1 or not all(isinstance(error, ForbiddenError) for error in failed):
            raise failed[0]
        return None

    async def _leader(self) -> Obj | None:
        """The Lease of its leader."""
        now = self._context.clock.now()
        for name in self._sign.leases:
            item = await self._find(LEASES, name)
            if item is None:
                continue
            if is_renewed(item, now):
                return _about(LEASES, item)
        return None

    async def _deployment(self) -> Obj | None:
        """The Deployment of the project, if it has ready pods."""
        for name in self._sign.deployments:
            item = await self._find(DEPLOYMENTS, name)
            if item is not None and item.read(_Deployment).status.ready_replicas > 0:
                return _about(DEPLOYMENTS, item)
        return None

    async def _find(self, kind: Kind, name: str) -> Item | None:
        try:
            return await self._context.api.get(kind, self._namespace, name)
        except NotFoundError:
            return None


def is_renewed(item: Item, now: datetime) -> bool:
    """Whether a process holds the Lease and has renewed it recently."""
    spec = item.read(Lease).content()
    lasts_s = max(2.0 * (spec.lease_duration_seconds or 0), _LEAST_S)
    renewed = spec.renewed_at() if spec.holder_identity else None
    return renewed is not None and (now - renewed).total_seconds() < lasts_s


def _about(kind: Kind, item: Item) -> Obj:
    meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": meta}
