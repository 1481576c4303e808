"""Keeps pods off nodes whose measured load is above a threshold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.jobs import PodOfJob
from shoal.engine.queues.disciplines.volcano.plugins.arguments import number
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin, RowMask
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView

_THRESHOLD = 80.0
_NAMES = {"cpu": "cpu", "mem": "memory"}


class NodeLoad(Plugin):
    defines = frozenset({"Predicate"})

    def __init__(self, session: SessionView, option: PluginOption) -> None:
        super().__init__(session, option)
        said = option.arguments.get("thresholds")
        thresholds = said if isinstance(said, Mapping) else {}
        self._mask: RowMask | None = None
        load = session.node_load
        if load:
            limits = {resource: number(thresholds, name, _THRESHOLD) for name, resource in _NAMES.items()}
            self._mask = np.array(
                [
                    all(load.get(name, {}).get(resource, 0.0) <= limit for resource, limit in limits.items())
                    for name in session.cluster.names
                ],
                np.bool_,
            )

    def rows(self, _pod: PodOfJob) -> RowMask | None:
        return self._mask
