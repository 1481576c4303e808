"""Serves external.metrics.k8s.io to the API server's proxy, from the triggers of ScaledObjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from aiohttp import web

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.autoscale.exposed_metrics.documents import (
    EXTERNAL,
    EXTERNAL_VERSION,
    external_resources,
    external_value_list,
)
from shoal.embedded.apiserver import status
from shoal.embedded.kubelets.endpoint.metrics_api import group_of
from shoal.embedded.kubelets.endpoint.metrics_routes import json_answer
from shoal.embedded.kubelets.endpoint.summary import rfc3339
from shoal.units.errors import ShoalError, UserError

EXTERNAL_PREFIX = f"/apis/{EXTERNAL}"
ExternalValues = Sequence[tuple[str, Mapping[str, str], int]]
"""Name, labels and value in thousandths."""


class ExternalSource(Protocol):
    async def values(self, namespace: str, name: str, selector: Selector) -> ExternalValues:
        """Raises UserError if there is no such metric, TemporaryError if it cannot be read now."""
        ...

    def names(self) -> Sequence[str]: ...


class ExternalMetricsRoutes:
    def __init__(self, source: ExternalSource, seconds: Callable[[], float]) -> None:
        self._source = source
        self._seconds = seconds

    def routes(self) -> list[web.RouteDef]:
        root = f"{EXTERNAL_PREFIX}/{EXTERNAL_VERSION}"
        return [
            web.get(EXTERNAL_PREFIX, self._group),
            web.get(root, self._resources),
            web.get(f"{root}/namespaces/{{namespace}}/{{metric}}", self._values),
        ]

    async def _group(self, _: web.Request) -> web.StreamResponse:
        return json_answer(group_of(EXTERNAL, (EXTERNAL_VERSION,)))

    async def _resources(self, _: web.Request) -> web.StreamResponse:
        return json_answer(external_resources(self._source.names()))

    async def _values(self, request: web.Request) -> web.StreamResponse:
        namespace, metric = request.match_info["namespace"], request.match_info["metric"]
        try:
            selector = parse_label_selector(request.query.get("labelSelector", ""))
            values = await self._source.values(namespace, metric, selector)
        except UserError as error:
            refused = status.ApiError(400, "BadRequest", error.what)
            return json_answer(refused.status(), refused.code)
        except ShoalError as error:
            failed = status.ApiError(500, "InternalError", f"Internal error occurred: {error}")
            return json_answer(failed.status(), failed.code)
        return json_answer(external_value_list(values, rfc3339(self._seconds())))
