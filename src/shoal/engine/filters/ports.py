"""Excludes nodes on which a host port of the pod is in use."""

from __future__ import annotations

from collections.abc import Callable

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.filters.rule import Verdicts
from shoal.engine.reasons import Code
from shoal.engine.window import Window


class HostPorts:
    code = Code.PORTS

    def compiled(self, cluster: Cluster, ask: Ask) -> Callable[[Window], Verdicts] | None:
        if not ask.host_ports:
            return None
        return lambda window: cluster.ports.free(ask.host_ports, window.rows)

    def detail(self, _cluster: Cluster, ask: Ask, _row: int) -> str:
        return ", ".join(str(port.port) for port in ask.host_ports)
