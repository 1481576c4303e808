"""All series of the cluster as one text; the lines of an object are made once for each of its versions.

Where kube-state-metrics runs, the text has no series: each would be there twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from weakref import WeakKeyDictionary

import msgspec

from shoal.api.meta import ObjectMeta
from shoal.api.partial import MetadataOf
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import (
    AUTOSCALERS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    VOLUMES,
    Kind,
)
from shoal.telemetry.kube_state.autoscalers import autoscaler_series
from shoal.telemetry.kube_state.cron_jobs import cron_job_series
from shoal.telemetry.kube_state.nodes import namespace_series, node_series
from shoal.telemetry.kube_state.pods import pod_series
from shoal.telemetry.kube_state.quotas_and_claims import resource_quota_series, volume_claim_series
from shoal.telemetry.kube_state.series import Family
from shoal.telemetry.kube_state.volumes import volume_series
from shoal.telemetry.kube_state.workloads import (
    daemon_set_series,
    deployment_series,
    job_series,
    replica_set_series,
    stateful_set_series,
)

_log = logging.getLogger("shoal.telemetry")
_READERS: tuple[tuple[Kind, Callable[[Item], Family]], ...] = (
    (PODS, pod_series),
    (NODES, node_series),
    (NAMESPACES, namespace_series),
    (DEPLOYMENTS, deployment_series),
    (STATEFUL_SETS, stateful_set_series),
    (DAEMON_SETS, daemon_set_series),
    (REPLICA_SETS, replica_set_series),
    (JOBS, job_series),
    (RESOURCE_QUOTAS, resource_quota_series),
    (VOLUME_CLAIMS, volume_claim_series),
    (VOLUMES, volume_series),
    (CRON_JOBS, cron_job_series),
    (AUTOSCALERS, autoscaler_series),
)
KINDS = tuple(kind for kind, _ in _READERS)
"""Those that have series."""
_MARK, _NAME = b"kube-state-metrics", "app.kubernetes.io/name"
_THERE = "# kube-state-metrics runs in this cluster: its series are not served here\n"


class KubeStateText:
    def __init__(self, informers: Informers) -> None:
        self._informers = informers
        self._known: WeakKeyDictionary[Item, Family] = WeakKeyDictionary()
        for kind, _ in _READERS:
            informers.of(kind)

    def text(self) -> str:
        if self._is_served_by_another():
            return _THERE
        families: dict[str, list[str]] = {}
        for kind, read in _READERS:
            for item in self._informers.of(kind):
                for name, lines in self._of(kind, item, read).items():
                    families.setdefault(name, []).extend(lines)
        return "".join(_family(name, lines) for name, lines in sorted(families.items()))

    def _of(self, kind: Kind, item: Item, read: Callable[[Item], Family]) -> Family:
        found = self._known.get(item)
        if found is None:
            try:
                found = read(item)
            except (msgspec.DecodeError, ValueError) as error:
                _log.warning("%s %s/%s has no metrics: %s", kind.name, item.namespace, item.name, error)
                found = {}
            self._known[item] = found
        return found

    def _is_served_by_another(self) -> bool:
        for item in self._informers.of(PODS):
            if _MARK in item.data:
                labels = item.read(MetadataOf[ObjectMeta]).metadata.labels
                if labels.get(_NAME) == _MARK.decode():
                    return True
        return False


def _family(name: str, lines: Iterable[str]) -> str:
    kind = "counter" if name.endswith("_total") else "gauge"
    return f"# TYPE {name} {kind}\n" + "\n".join(lines) + "\n"
